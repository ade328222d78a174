"""Brings the files of one commit: fetched aside in ranges, verified, moved in when all of them are whole.

What is whole aside stays there over a failure that may pass and over a kill: the next call goes on from it.
A kill between two moves leaves files of the right content in place, which the next call keeps.
"""

from __future__ import annotations

import asyncio
import shutil
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from podferry.contract.commit import Commit, CommittedFile
from podferry.contract.errors import Changed, Corrupt, FerryError, Refused, TemporaryError
from podferry.contract.manifest import Entry
from podferry.contract.tmpfs_cost import allocated_bytes
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.verified_staging import FILES, VerifiedStaging, committed_checksum
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.partial_file import continued
from podferry.sidecar.fetch.plan import FetchPlan, plan_fetch
from podferry.sidecar.fetch.source import FetchSource, Progress
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.sidecar.runtime.file_digest import digest_of

OnProgress = Callable[[int, int], None]
"""Is told how many bytes are there, of how many."""

SETTINGS = PrefetchSettings()
FOR_ANYBODY, DIRECTORY_FOR_ANYBODY = 0o666, 0o777
"""The trainer's user is unknown, and it may overwrite or remove what was restored."""


def for_rank(commit: Commit, rank: int | None) -> Commit:
    """The commit with one file of each name: the rank's own, else what all share, else the lowest rank's.

    All names stay: after a change of the world's size a rank may need what any of the others wrote.
    """
    best: dict[str, CommittedFile] = {}
    for file in commit.files:
        held = best.get(file.name)
        if held is None or _distance(file, rank) < _distance(held, rank):
            best[file.name] = file
    return msgspec.structs.replace(commit, files=tuple(best.values()))


def _distance(file: CommittedFile, rank: int | None) -> tuple[bool, int]:
    return (file.rank != rank, -1 if file.rank is None else file.rank)


def bytes_to_restore(commit: Commit, target: Path, aside: Path, rank: int | None = None) -> int:
    """Bytes of their volume, in whole pages, that a restore would still write for this rank.

    Args:
        commit: What is to be restored.
        target: The checkpoint directory.
        aside: Where files grow.
        rank: Whose files.
    """
    files = for_rank(commit, rank).files
    places = (target, aside / FILES)
    return allocated_bytes(
        file.size for file in files if not any((place / file.name).exists() for place in places)
    )


class CommitDownloader:
    """Brings commits of one lineage.

    Attributes:
        store: The lineage's.
        told: Is told the progress of the commit in hand.
        settings: How much is in flight.
    """

    def __init__(
        self,
        store: LineageStore,
        told: OnProgress = lambda done, total: None,
        settings: PrefetchSettings = SETTINGS,
    ) -> None:
        self.store = store
        self.told = told
        self.settings = settings

    async def bring(self, commit: Commit, target: Path, aside: Path) -> None:
        """Bring all files of a commit to the directory `target`; what stands there already is kept.

        Args:
            commit: With one file of each name: see `for_rank`.
            target: The checkpoint directory.
            aside: A directory of this restore alone, on the same file system. It is removed at the end, but
                for a failure after which the same call may succeed.

        Raises:
            Refused: The directory holds another version of one of the files, or it cannot be written.
            NotFound, Corrupt: An object is missing or damaged.
            Changed: An object was written anew meanwhile; whether with the same content, the next call finds.
            TemporaryError: The store did not answer, after all attempts.
        """
        standing = await asyncio.to_thread(_standing, target, commit.files)
        missing = [file for file in commit.files if file.name not in standing]
        if missing:
            stage = VerifiedStaging(aside, commit.files, self.store.uri)
            try:
                await self._fill(stage, commit, standing)
            finally:
                stage.close()
            for file in missing:
                _move(stage.root / file.name, target / file.name, target)
        shutil.rmtree(aside, ignore_errors=True)

    async def _fill(self, stage: VerifiedStaging, commit: Commit, standing: frozenset[str]) -> None:
        """Fetch into the stage what neither stands in place nor lies in it whole."""
        kept = standing | await asyncio.to_thread(stage.prepare)
        try:
            plan = continued(plan_fetch(stage.manifest, kept, self.settings), stage)
            source, came = await self._source(commit, plan)
            await Fetcher(plan, source, stage, self.settings, came).run()
        except (Changed, Corrupt, TemporaryError):
            raise
        except FerryError:
            shutil.rmtree(stage.root.parent, ignore_errors=True)
            raise

    async def _source(self, commit: Commit, plan: FetchPlan) -> tuple[FetchSource, Progress]:
        done = plan.partial + sum(entry.size for entry in plan.kept)

        def came(files: int, count: int) -> None:
            nonlocal done
            done += count
            self.told(done, commit.bytes)

        came(0, 0)
        wanted = {entry.name for entry in plan.files}
        objects = await self._objects(commit, [file for file in commit.files if file.name in wanted])
        source = FetchSource(self.store.destination, lambda file: objects[file.name], committed_checksum)
        return source, came

    async def _objects(self, commit: Commit, files: Iterable[CommittedFile]) -> dict[str, Entry]:
        """What lies at the destination, by the name that it has in the checkpoint directory.

        Raises:
            NotFound, Corrupt: It is gone, or has another size than the commit says.
        """
        found: dict[str, Entry] = {}

        async def look(file: CommittedFile) -> None:
            entry = await self.store.stat(file.object)
            if entry.size != file.size:
                # Its first bytes may be those that were committed; `Catalogue.flaws` calls it damaged too.
                measured = f"{entry.size} bytes, the commit says {file.size}"
                raise Corrupt.of(f"{self.store.uri_of(entry.name)} has the wrong size", measured)
            found[file.name] = msgspec.structs.replace(entry, name=self.store.path(entry.name))

        await for_each_limited(tuple(files), look, self.settings.in_flight)
        return found


def _standing(target: Path, files: Iterable[CommittedFile]) -> frozenset[str]:
    return frozenset(file.name for file in files if _stands(target / file.name, file))


def _stands(path: Path, file: CommittedFile) -> bool:
    """Whether the file already lies there with the same content.

    Raises:
        Refused: Another content lies there.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise _another(path, "a part of its path is a file") from None
    if not stat.S_ISREG(found.st_mode):
        raise _another(path, "no regular file lies there")
    if found.st_size == file.size:
        with path.open("rb", buffering=0) as opened:
            if digest_of(opened) == file.xxh128:
                return True
    raise _another(path, f"{found.st_size} bytes there, {file.size} committed")


def _another(path: Path, measured: str) -> Refused:
    return Refused.of(
        f"{path} is not the version that would be restored",
        measured,
        "Move it away to resume from the committed one, or set restore to never to keep it",
    )


def _move(grown: Path, target: Path, root: Path) -> None:
    """Rename a whole file in; the directories above it are made.

    Raises:
        Refused: The checkpoint directory cannot be written.
    """
    try:
        for folder in reversed([parent for parent in target.parents if root in parent.parents]):
            if not folder.exists():
                folder.mkdir()
                folder.chmod(DIRECTORY_FOR_ANYBODY)
        grown.chmod(FOR_ANYBODY)
        grown.rename(target)
    except OSError as error:
        remedy = "Check the checkpoint directory and its permissions"
        raise Refused.of(f"{target} cannot be written", str(error), remedy) from error

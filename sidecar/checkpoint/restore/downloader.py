"""Downloads the files of one commit: in ranges, verified, renamed into place when all of them are complete.

Complete files stay in the staging directory after a temporary failure or a kill, and the next call resumes
from them. A kill between two renames leaves files of the right content in place, which the next call keeps.
"""

from __future__ import annotations

import asyncio
import shutil
import stat
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from podferry.contract.destination.commit import Commit, CommittedFile
from podferry.contract.errors import Changed, Corrupt, FerryError, Refused, TemporaryError
from podferry.contract.manifest import Entry
from podferry.contract.tmpfs_cost import allocated_bytes
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.verified_staging import (
    FILES_DIR,
    VerifiedStaging,
    committed_checksum,
)
from podferry.sidecar.config.tuning import PrefetchSettings, Tuning
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.partial_file import count_partial_bytes
from podferry.sidecar.fetch.plan import FetchPlan, plan_fetch
from podferry.sidecar.fetch.source import FetchSource, Progress
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.sidecar.runtime.file_digest import digest_of

OnProgress = Callable[[int, int], None]
"""Called with (bytes done, bytes total) of the current commit."""

MoveAway = Callable[[str, str], None]
"""Called with a name at the top of the target and the reason, to move it away, or raise `Refused`."""

SETTINGS = Tuning().prefetch
FILE_MODE, DIRECTORY_MODE = 0o666, 0o777
"""The trainer's user is unknown, and it may overwrite or remove what was restored."""


def for_rank(commit: Commit, rank: int | None) -> Commit:
    """The commit with one file of each name: the rank's own, else the shared one, else the lowest rank's.

    All names stay: if the number of pods changes, a rank may need what any of the others wrote.
    """
    best: dict[str, CommittedFile] = {}
    for file in commit.files:
        other = best.get(file.name)
        if other is None or _preference(file, rank) < _preference(other, rank):
            best[file.name] = file
    return msgspec.structs.replace(commit, files=tuple(best.values()))


def _preference(file: CommittedFile, rank: int | None) -> tuple[bool, int]:
    return (file.rank != rank, -1 if file.rank is None else file.rank)


def bytes_to_restore(commit: Commit, target: Path, staging: Path, rank: int | None = None) -> int:
    """Bytes, in full pages, that a restore for this rank would still write to the volume."""
    files, directories = for_rank(commit, rank).files, (target, staging / FILES_DIR)
    return allocated_bytes(
        file.size for file in files if not any((parent / file.name).exists() for parent in directories)
    )


class CommitDownloader:
    """Downloads commits of one lineage.

    `move_away` moves away what is in the way, once all files are downloaded; None refuses to restore then.

    Attributes:
        verified: Objects whose bytes were read and are the committed ones.
    """

    def __init__(
        self,
        store: LineageStore,
        on_progress: OnProgress = lambda done, total: None,
        settings: PrefetchSettings = SETTINGS,
        move_away: MoveAway | None = None,
    ) -> None:
        self._store, self._on_progress, self._settings = store, on_progress, settings
        self._move_away = move_away
        self.verified: set[str] = set()

    async def download(self, commit: Commit, target: Path, staging: Path) -> None:
        """Download all files of a commit to the directory `target`; files that are there already are kept.

        Args:
            commit: With one file of each name: see `for_rank`.
            target: The checkpoint directory.
            staging: A directory of this restore alone, on the same file system. It is removed at the end,
                except after a failure after which the same call may succeed.

        Raises:
            Refused: The directory holds another version of one of the files, or it cannot be written.
            NotFound, Corrupt: An object is missing or damaged.
            Changed: An object was replaced during the download, perhaps with the same content: call again.
            TemporaryError: The store did not answer, after all attempts.
        """
        restored, in_the_way = await asyncio.to_thread(_compare, target, commit)
        if in_the_way and self._move_away is None:
            raise next(iter(in_the_way.values()))
        missing = [file for file in commit.files if file.name not in restored]
        if missing:
            stage = VerifiedStaging(staging, commit.files, self._store.uri)
            try:
                await self._fill(stage, commit, restored)
            finally:
                stage.close()
                complete = (file.object for file in missing if (stage.root / file.name).exists())
                self.verified.update(complete)
            for top, refusal in in_the_way.items():
                if self._move_away is not None:
                    self._move_away(top, str(refusal.problems[0].measured))
            for file in missing:
                _move(stage.root / file.name, target / file.name, target)
        shutil.rmtree(staging, ignore_errors=True)

    async def _fill(self, stage: VerifiedStaging, commit: Commit, restored: frozenset[str]) -> None:
        """Download the files that are neither in place nor complete in the stage."""
        kept = restored | await asyncio.to_thread(stage.prepare)
        try:
            plan = count_partial_bytes(plan_fetch(stage.manifest, kept, self._settings), stage)
            progress = self._progress(commit, plan)
            objects = await self._objects(commit, {entry.name for entry in plan.files})
            source = FetchSource(self._store.destination, lambda file: objects[file.name], committed_checksum)
            await Fetcher(plan, source, stage, self._settings, progress).run()
        except (Changed, Corrupt, TemporaryError):
            raise
        except FerryError:
            shutil.rmtree(stage.root.parent, ignore_errors=True)
            raise

    def _progress(self, commit: Commit, plan: FetchPlan) -> Progress:
        done = plan.partial_bytes + sum(entry.size for entry in plan.kept)

        def progress(files: int, count: int) -> None:
            nonlocal done
            done += count
            self._on_progress(done, commit.bytes)

        progress(0, 0)
        return progress

    async def _objects(self, commit: Commit, names: Collection[str]) -> dict[str, Entry]:
        """The objects at the destination, by the names of their files; one of another size is `Corrupt`."""
        found: dict[str, Entry] = {}

        async def stat_object(file: CommittedFile) -> None:
            """Find the object of a file and compare its size."""
            entry = await self._store.stat(file.object)
            if entry.size != file.size:
                # Its first bytes may be the committed ones; `CommitReader.missing_objects` reports it, too.
                measured = f"{entry.size} bytes, the commit says {file.size}"
                raise Corrupt.of(f"{self._store.uri_of(file.object)} has the wrong size", measured)
            found[file.name] = msgspec.structs.replace(entry, name=self._store.path(file.object))

        files = [file for file in commit.files if file.name in names]
        await for_each_limited(files, stat_object, self._settings.in_flight)
        return found


def _compare(target: Path, commit: Commit) -> tuple[frozenset[str], dict[str, Refused]]:
    """The files that are there already, and the names at the top that are in the way, with the reasons."""
    found: set[str] = set()
    in_the_way: dict[str, Refused] = {}
    for file in commit.files:
        try:
            if _is_restored(target / file.name, file):
                found.add(file.name)
        except Refused as refusal:
            in_the_way.setdefault(file.name.partition("/")[0], refusal)
    return frozenset(name for name in found if name.partition("/")[0] not in in_the_way), in_the_way


def _is_restored(path: Path, file: CommittedFile) -> bool:
    """Whether the file already exists with the same content; other content is `Refused`."""
    folders = path.parents[: file.name.count("/")]
    if any(folder.is_symlink() for folder in folders):  # what is written there would be elsewhere
        raise _other_version(path, "a part of its path is a symbolic link")
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise _other_version(path, "a part of its path is a file") from None
    if not stat.S_ISREG(found.st_mode):
        raise _other_version(path, "it is not a regular file")
    if found.st_size == file.size:
        with path.open("rb", buffering=0) as opened:
            if digest_of(opened) == file.xxh128:
                return True
    raise _other_version(path, f"it has {found.st_size} bytes, the committed one {file.size}")


def _other_version(path: Path, measured: str) -> Refused:
    remedy = "Move it away to resume from the committed one, or set restore to never to keep it"
    return Refused.of(f"{path} is not the version to restore", measured, remedy)


def _move(staged: Path, target: Path, root: Path) -> None:
    """Rename a complete file into place; missing directories are created."""
    try:
        for folder in reversed([parent for parent in target.parents if root in parent.parents]):
            if not folder.exists():
                folder.mkdir()
                folder.chmod(DIRECTORY_MODE)
        staged.chmod(FILE_MODE)
        staged.rename(target)
    except OSError as error:
        remedy = "Check the checkpoint directory and its permissions"
        raise Refused.of(f"{target} cannot be written", str(error), remedy) from error

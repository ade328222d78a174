"""Brings back the checkpoint to resume from: verified, or not at all."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import stat
import time
from dataclasses import dataclass
from pathlib import Path

import structlog

from podferry.contract.api import RestoredStatus
from podferry.contract.commit import Commit, CommittedFile
from podferry.contract.errors import Corrupt, FerryError, NotFound, Refused
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri, parse_uri
from podferry.sidecar.catalogue import Catalogue
from podferry.sidecar.pointers import is_pointer
from podferry.sidecar.tasks import all_of
from podferry.storage.open import open_store
from podferry.storage.store import Store, StoreConfig

log = structlog.get_logger(__name__)

AUTO, LATEST, NEVER = "auto", "latest", "never"
CHUNK = 8 << 20
"""Bytes of one request: as for the dataset's ranges."""
FILES_AT_ONCE = 4
FOR_ANYBODY, DIRECTORY_FOR_ANYBODY = 0o666, 0o777
"""The trainer's user is unknown, and it may overwrite or remove what was restored."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where to restore from.

    Attributes:
        catalogue: The destination, this lineage's own or another one's.
        lineage: Whose commits.
        name: The checkpoint wanted, None for the newest.
        required: Whether it is an error that there is none.
    """

    catalogue: Catalogue
    lineage: str
    name: str | None = None
    required: bool = True

    async def commits(self) -> list[Commit]:
        """The commits to try, best first.

        Raises:
            NotFound: There is none, and one is required.
            FormatTooNew: The newest was written by a later podferry.
        """
        found = [commit async for commit in self.catalogue.newest_first(self.lineage)]
        wanted = [commit for commit in found if self.name in {None, commit.name, commit.checkpoint}]
        if wanted or not self.required:
            return wanted
        place = self.catalogue.store.uri / self.lineage
        if not found:
            raise NotFound.of(
                "there is no checkpoint to restore", f"no commit below {place}", await self._near()
            )
        names = list(dict.fromkeys(commit.name for commit in found))
        remedy = did_you_mean(self.name or "", names, f"There are: {', '.join(names[:5])}")
        raise NotFound.of(
            f"there is no checkpoint {self.name!r} to restore", f"{len(found)} below {place}", remedy
        )

    async def _near(self) -> str:
        lineages = await self.catalogue.lineages()
        known = f"Lineages there: {', '.join(lineages[:5])}" if lineages else "Nothing is committed there yet"
        return did_you_mean(self.lineage, lineages, known)


async def source_of(wish: str, own: Catalogue, lineage: str, config: StoreConfig) -> Source | None:
    """What a `restore` annotation means, None for `never`.

    `auto` is the newest of the own lineage, if any; `latest` insists on one; a name is a checkpoint of the
    own lineage; a URI is a lineage, or a checkpoint's folder in one: a warm start.
    """
    if wish == NEVER:
        return None
    if wish in {AUTO, LATEST}:
        return Source(own, lineage, required=wish == LATEST)
    if "://" not in wish and not wish.startswith("/"):
        return Source(own, lineage, name=wish)
    return await _elsewhere(parse_uri(wish), config)


async def _elsewhere(uri: Uri, config: StoreConfig) -> Source:
    """`…/<lineage>` where commits lie below it, else `…/<lineage>/<checkpoint>`."""
    source = Source(Catalogue(open_store(uri.parent, config)), uri.name)
    if await source.catalogue.sequences(uri.name) or not uri.parent.name:
        return source
    above = Source(Catalogue(open_store(uri.parent.parent, config)), uri.parent.name, uri.name)
    unused = source if await above.catalogue.sequences(above.lineage) else above
    await unused.catalogue.store.close()
    return above if unused is source else source


def restored_status(commit: Commit, seconds: float) -> RestoredStatus:
    """What a restored commit looks like to the trainer: pointers lie beside the data that `path` names."""
    data = [file for file in commit.files if not is_pointer(file.name, file.size)] or commit.files
    tops = {file.name.partition("/")[0] for file in data}
    return RestoredStatus(
        name=commit.name,
        path=tops.pop() if len(tops) == 1 else commit.name,
        checkpoint=commit.checkpoint,
        sequence=commit.sequence,
        step=commit.step,
        lineage=commit.lineage,
        bytes=commit.bytes,
        seconds=seconds,
    )


async def restore(source: Source, target: Path, aside: Path) -> tuple[Commit, float] | None:
    """Bring the best commit of `source` to the directory `target`; it and the seconds, None without one.

    A commit whose data is missing or damaged is passed over for the one before it, and that is logged.

    Args:
        source: Where from.
        target: The checkpoint directory.
        aside: An empty directory to be made on the same file system, where files grow until verified.

    Raises:
        Refused: The directory already holds another version of one of the files.
        NotFound: A checkpoint was required, and none is whole.
    """
    problems: list[FerryError] = []
    for commit in await source.commits():
        started = time.monotonic()
        try:
            await _bring(source.catalogue.store, commit, target, aside)
        except (Corrupt, NotFound) as error:
            log.warning(
                "a committed checkpoint is damaged: trying the one before",
                name=commit.name,
                reason=str(error),
            )
            problems.append(error)
            continue
        return commit, time.monotonic() - started
    if problems and source.required:
        raise NotFound(*(problem for error in problems for problem in error.problems))
    return None


async def _bring(store: Store, commit: Commit, target: Path, aside: Path) -> None:
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    missing = [
        file for file in commit.files if not await asyncio.to_thread(_stands, target / file.name, file)
    ]
    slots = asyncio.Semaphore(FILES_AT_ONCE)

    async def one(file: CommittedFile) -> None:
        async with slots:
            await download(store, f"{commit.lineage}/{file.object}", file, aside / file.name)

    try:
        await all_of(one(file) for file in missing)
        for file in missing:
            _admit(aside / file.name, target / file.name, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


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
        with path.open("rb") as opened:
            if hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256:
                return True
    raise _another(path, f"{found.st_size} bytes there, {file.size} committed")


def _another(path: Path, measured: str) -> Refused:
    return Refused.of(
        f"{path} is not the version that would be restored",
        measured,
        "Move it away to resume from the committed one, or set restore to never to keep it",
    )


async def download(store: Store, name: str, file: CommittedFile, path: Path) -> None:
    """Fetch one committed file and verify it; on return `path` holds exactly what was committed.

    Raises:
        NotFound, Corrupt: It is gone or damaged.
    """
    size = (await store.stat(name)).size
    if size != file.size:
        # Its first bytes may be those that were committed; `Catalogue.flaws` calls it damaged all the same.
        measured = f"{size} bytes, the commit says {file.size}"
        raise Corrupt.of(f"{store.uri / name} has the wrong size", measured)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with path.open("wb") as out:
        for start in range(0, file.size, CHUNK):
            data = await store.read(name, start, min(CHUNK, file.size - start))
            await asyncio.to_thread(digest.update, data)
            await asyncio.to_thread(out.write, data)
    if digest.hexdigest() != file.sha256:
        measured = f"sha256 {digest.hexdigest()}, the commit says {file.sha256}"
        raise Corrupt.of(f"{store.uri / name} is damaged", measured)


def _admit(grown: Path, target: Path, root: Path) -> None:
    for folder in reversed([parent for parent in target.parents if root in parent.parents]):
        if not folder.exists():
            folder.mkdir()
            folder.chmod(DIRECTORY_FOR_ANYBODY)
    grown.chmod(FOR_ANYBODY)
    grown.rename(target)

"""Brings back the checkpoint to resume from: verified, or not at all."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import structlog

from podferry.contract.commit import Commit
from podferry.contract.errors import Changed, Corrupt, FerryError, NotFound
from podferry.contract.status import RestoredStatus
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri, parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader, committed_lineages
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.detect.pointer_files import is_pointer
from podferry.sidecar.checkpoint.restore.downloader import CommitDownloader, OnProgress, for_rank
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

log = structlog.get_logger(__name__)

FETCH_ATTEMPTS = 3
"""Times that a commit's data is fetched before it counts as damaged."""
AUTO, LATEST, NEVER = "auto", "latest", "never"


@dataclass(frozen=True, slots=True)
class RestoreSource:
    """Where to restore from.

    Attributes:
        reader: Of the lineage: this agent's own, or another one.
        name: The checkpoint wanted, None for the newest.
        required: Whether it is an error that there is none.
    """

    reader: CommitReader
    name: str | None = None
    required: bool = True

    async def commits(self) -> list[Commit]:
        """The commits to try, best first.

        Raises:
            NotFound: There is none, and one is required.
            FormatTooNew: The newest was written by a later podferry.
        """
        found = [commit async for commit in self.reader.newest_first()]
        wanted = [commit for commit in found if self.name in {None, commit.name, commit.checkpoint}]
        if wanted or not self.required:
            return wanted
        place = self.reader.store.uri
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
        lineages = await committed_lineages(self.reader.store.destination)
        known = f"Lineages there: {', '.join(lineages[:5])}" if lineages else "Nothing is committed there yet"
        return did_you_mean(self.reader.store.lineage, lineages, known)


async def restore_source_of(wish: str, own: CommitReader, config: StoreConfig) -> RestoreSource | None:
    """What a `restore` annotation means, None for `never`.

    `auto` is the newest of the own lineage, if any; `latest` insists on one; a name is a checkpoint of the
    own lineage; a URI is a lineage, or a checkpoint's folder in one: a warm start.
    """
    if wish == NEVER:
        return None
    if wish in {AUTO, LATEST}:
        return RestoreSource(own, required=wish == LATEST)
    if "://" not in wish and not wish.startswith("/"):
        return RestoreSource(own, name=wish)
    return await _elsewhere(parse_uri(wish), config)


async def _elsewhere(uri: Uri, config: StoreConfig) -> RestoreSource:
    """`…/<lineage>` where commits lie below it, else `…/<lineage>/<checkpoint>`."""
    lineage = LineageStore(open_store(uri.parent, config), uri.name)
    source = RestoreSource(CommitReader(lineage))
    if await source.reader.sequences() or not uri.parent.name:
        return source
    above = LineageStore(open_store(uri.parent.parent, config), uri.parent.name)
    checkpoint = RestoreSource(CommitReader(above), uri.name)
    if await checkpoint.reader.sequences():
        await lineage.destination.close()
        return checkpoint
    await above.destination.close()
    return source


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


async def restore(
    source: RestoreSource,
    target: Path,
    aside: Path,
    rank: int | None = None,
    told: OnProgress = lambda done, total: None,
) -> tuple[Commit, float] | None:
    """Bring the best commit of `source` to the directory `target`; None where there is none.

    A commit whose data is missing or damaged is passed over for the one before it, and that is logged.

    Args:
        source: Where from.
        target: The checkpoint directory.
        aside: A directory of this restore alone, on the same file system, where files grow until verified.
            What is whole in it is used: call again after a failure that may pass, or after a kill.
        rank: This agent's number in its training, None where nothing says.
        told: Is told the progress of the commit in hand.

    Returns:
        The commit with the files that came, and the seconds.

    Raises:
        Refused: The directory already holds another version of one of the files, or cannot be written.
        NotFound: A checkpoint was required, and none is whole.
        TemporaryError: The store did not answer.
    """
    problems: list[FerryError] = []
    bringer = CommitDownloader(source.reader.store, told)
    for commit in await source.commits():
        started = time.monotonic()
        chosen = for_rank(commit, rank)
        try:
            await _bring(bringer, chosen, target, aside)
        except (Changed, Corrupt, NotFound) as error:
            log.warning(
                "a committed checkpoint is damaged: trying the one before",
                name=commit.name,
                sequence=commit.sequence,
                reason=str(error),
            )
            problems.append(error)
            continue
        _tell_strangers(chosen, rank)
        return chosen, time.monotonic() - started
    if problems and source.required:
        raise NotFound(*(problem for error in problems for problem in error.problems))
    return None


async def _bring(bringer: CommitDownloader, commit: Commit, target: Path, aside: Path) -> None:
    """Again where an object has changed or came damaged: what is verified by then is not fetched again.

    Another agent may have sent the same bytes again, and an answer may be damaged while the object is not.
    """
    for left in reversed(range(FETCH_ATTEMPTS)):
        try:
            await bringer.bring(commit, target, aside)
        except (Changed, Corrupt) as error:
            if not left:
                await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)
                raise
            log.warning("fetching again what came damaged", name=commit.name, reason=str(error))
        else:
            return


def _tell_strangers(commit: Commit, rank: int | None) -> None:
    strangers = [file for file in commit.files if file.rank not in {None, rank}]
    if strangers:
        log.warning(
            "files of the lowest rank: the checkpoint has none of this one",
            rank=rank,
            ranks=sorted({file.rank for file in strangers if file.rank is not None}),
            files=[file.name for file in strangers[:5]],
        )

"""Restores the checkpoint to resume from: verified and complete, or not at all."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import structlog

from podferry.contract.destination.commit import Commit
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

DOWNLOAD_ATTEMPTS = 3
"""How often a commit's data is downloaded before it counts as damaged."""
MAX_NAMES_SHOWN = 5
AUTO, LATEST, NEVER = "auto", "latest", "never"


@dataclass(frozen=True, slots=True)
class RestoreSource:
    """Where to restore from.

    Attributes:
        reader: The lineage's: this agent's own lineage, or another one.
        name: The checkpoint to restore, None for the newest.
        required: Whether it is an error if there is none.
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
        matching = [commit for commit in found if self.name in {None, commit.name, commit.checkpoint}]
        if matching or not self.required:
            return matching
        uri = self.reader.store.uri
        if not found:
            measured, remedy = f"no commit below {uri}", await self._suggest_lineage()
            raise NotFound.of("there is no checkpoint to restore", measured, remedy)
        names = list(dict.fromkeys(commit.name for commit in found))
        remedy = did_you_mean(self.name or "", names, f"There are: {', '.join(names[:MAX_NAMES_SHOWN])}")
        what = f"there is no checkpoint {self.name!r} to restore"
        raise NotFound.of(what, f"{len(found)} below {uri}", remedy)

    async def _suggest_lineage(self) -> str:
        lineages = await committed_lineages(self.reader.store.destination)
        known = f"Lineages there: {', '.join(lineages[:MAX_NAMES_SHOWN])}"
        otherwise = known if lineages else "Nothing is committed there yet"
        return did_you_mean(self.reader.store.lineage, lineages, otherwise)


async def restore_source_of(setting: str, own: CommitReader, config: StoreConfig) -> RestoreSource | None:
    """The source that a `restore` annotation names, None for `never`.

    `auto` is the newest checkpoint of the agent's own lineage, if any; `latest` requires one; a name is a
    checkpoint of the own lineage; a URI is a lineage, or a checkpoint's folder in one (a warm start).
    """
    if setting == NEVER:
        return None
    if setting in {AUTO, LATEST}:
        return RestoreSource(own, required=setting == LATEST)
    if "://" not in setting and not setting.startswith("/"):
        return RestoreSource(own, name=setting)
    return await _source_at(parse_uri(setting), config)


async def _source_at(uri: Uri, config: StoreConfig) -> RestoreSource:
    """`…/<lineage>` if there are commits below it, else `…/<lineage>/<checkpoint>`."""
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
    """What the trainer learns about a restored commit; `path` names its data, not the pointer files."""
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
    staging: Path,
    rank: int | None = None,
    on_progress: OnProgress = lambda done, total: None,
) -> tuple[Commit, float] | None:
    """Restore the best commit of `source` to the directory `target`; None if there is none.

    If a commit's data is missing or damaged, the one before it is tried, and that is logged.

    Args:
        source: Where to restore from.
        target: The checkpoint directory.
        staging: A directory of this restore alone, on the same file system, for files until they are
            verified. Complete files in it are used: call again after a temporary failure or a kill.
        rank: This pod's number in its training run, None if unknown.
        on_progress: Called with (bytes done, bytes total) of the current commit.

    Returns:
        The commit with the restored files, and the seconds.

    Raises:
        Refused: The directory already holds another version of one of the files, or cannot be written.
        NotFound: A checkpoint was required, and none is complete.
        TemporaryError: The store did not answer.
    """
    errors: list[FerryError] = []
    downloader = CommitDownloader(source.reader.store, on_progress)
    for commit in await source.commits():
        started = time.monotonic()
        chosen = for_rank(commit, rank)
        try:
            await _download(downloader, chosen, target, staging)
        except (Changed, Corrupt, NotFound) as error:
            event, reason = "a committed checkpoint is damaged: trying the one before", str(error)
            log.warning(event, name=commit.name, sequence=commit.sequence, reason=reason)
            errors.append(error)
            continue
        _warn_of_other_ranks(chosen, rank)
        return chosen, time.monotonic() - started
    if errors and source.required:
        raise NotFound(*(problem for error in errors for problem in error.problems))
    return None


async def _download(downloader: CommitDownloader, commit: Commit, target: Path, staging: Path) -> None:
    """Download; retry if an object has changed or arrived damaged, without fetching verified files again.

    Another agent may have uploaded the same bytes again; a response may be damaged though the object is not.
    """
    for left in reversed(range(DOWNLOAD_ATTEMPTS)):
        try:
            await downloader.download(commit, target, staging)
        except (Changed, Corrupt) as error:
            if not left:
                await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)
                raise
            log.warning("fetching damaged files again", name=commit.name, reason=str(error))
        else:
            return


def _warn_of_other_ranks(commit: Commit, rank: int | None) -> None:
    others = [file for file in commit.files if file.rank not in {None, rank}]
    if others:
        ranks = sorted({file.rank for file in others if file.rank is not None})
        files = [file.name for file in others[:MAX_NAMES_SHOWN]]
        event = "restored files of the lowest rank: the checkpoint has none of this rank"
        log.warning(event, rank=rank, ranks=ranks, files=files)

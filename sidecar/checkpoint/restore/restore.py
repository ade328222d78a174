"""Restores the checkpoint to resume from: verified and complete, or not at all."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Changed, Corrupt, FerryError, NotFound
from podferry.contract.status import PassedOver, RestoredStatus
from podferry.sidecar.checkpoint.detect.pointer_files import POINTERS, is_pointer
from podferry.sidecar.checkpoint.restore.choice import MAX_NAMES_SHOWN, RestoreChoice, RestoreSource
from podferry.sidecar.checkpoint.restore.downloader import CommitDownloader, MoveAway, OnProgress, for_rank

log = structlog.get_logger(__name__)

DOWNLOAD_ATTEMPTS = 3
"""How often a commit's data is downloaded before it counts as damaged."""


@dataclass(frozen=True, slots=True)
class RestoreOutcome:
    """What was restored.

    Attributes:
        commit: With the restored files; None if there is nothing to restore.
        seconds: Duration of the download.
        passed_over: Newer commits that were not restored, newest first, at most `choice.MAX_PASSED_OVER`.
        passed_over_count: How many there are.
        damaged: Objects of damaged commits that were not verified: a download ends at the first damaged one.
    """

    commit: Commit | None = None
    seconds: float = 0.0
    passed_over: tuple[PassedOver, ...] = ()
    passed_over_count: int = 0
    damaged: frozenset[str] = frozenset()


def _common_path(name: str, tops: Collection[str]) -> str:
    """The stem that several files share; `.`, their directory, if they share none."""
    parts = [top for top in tops if not top.startswith(name)]
    return "." if parts and not all(part in POINTERS for part in parts) else name


def restored_status(commit: Commit, seconds: float) -> RestoredStatus:
    """What the trainer learns about a restored commit; `path` names its data, not the pointer files."""
    data = [file for file in commit.files if not is_pointer(file.name, file.size)] or commit.files
    tops = {file.name.partition("/")[0] for file in data}
    return RestoredStatus(
        name=commit.name,
        path=tops.pop() if len(tops) == 1 else _common_path(commit.name, tops),
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
    move_away: MoveAway | None = None,
    check: Callable[[Commit], None] = lambda commit: None,
) -> RestoreOutcome:
    """Restore the best commit of `source` to the directory `target`.

    If a commit's data is missing or damaged, it is passed over, which is logged, and the next one is tried.

    Args:
        source: Where to restore from.
        target: The checkpoint directory.
        staging: A directory of this restore alone, on the same file system, for files until they are
            verified. Complete files in it are used: call again after a temporary failure or a kill.
        rank: This pod's number in its training run, None if unknown.
        on_progress: Called with (bytes done, bytes total) of the current commit.
        move_away: Moves away what is in the way; None refuses to restore then.
        check: Called with each commit before it is downloaded; may refuse it.

    Raises:
        Refused: By `check`; the directory already holds another version of a file, or cannot be written.
        NotFound: A checkpoint was required, and none is complete.
        FormatTooNew: The one to restore was written by a later podferry.
        TemporaryError: The store did not answer.
    """
    errors: list[FerryError] = []
    damaged: set[str] = set()
    downloader = CommitDownloader(source.reader.store, on_progress, move_away=move_away)
    choice = RestoreChoice(source, await source.reader.history(source.known))
    async for commit in choice.candidates():
        started = time.monotonic()
        check(commit)
        chosen = for_rank(commit, rank)
        try:
            await _download(downloader, chosen, target, staging)
        except (Changed, Corrupt, NotFound) as error:
            event, reason = "a committed checkpoint is damaged: trying the one before", str(error)
            log.warning(event, name=commit.name, sequence=commit.sequence, reason=reason)
            errors.append(error)
            if not isinstance(error, NotFound):  # who refers to an object looks whether it is there
                damaged.update(file.object for file in chosen.files)
            choice.pass_over(commit, f"damaged: {error.problems[0].what}")
            continue
        _warn_of_other_ranks(chosen, rank)
        seconds, found = time.monotonic() - started, chosen
        break
    else:
        if source.required:
            raise await choice.failure(errors)
        seconds, found = 0.0, None
    unverified = frozenset(damaged - downloader.verified)
    return RestoreOutcome(found, seconds, choice.passed_over, choice.passed_over_count, unverified)


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

"""Finds the lineages of one program at a destination, for a run that has found nothing to resume from.

The program was moved, runs on another host, has other arguments, or its lineage was named by podferry 0.1.
One listing and at most `MAX_READ` small reads, in parallel; it never takes longer than `SECONDS`.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC

import structlog

from podferry.contract.destination.commit import LATEST, Commit, decode_commit
from podferry.contract.destination.provenance import DatasetChange, DatasetVersion, dataset_changes
from podferry.contract.errors import FerryError
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.config.agent_config import ProgramRun
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.storage.store import Store

log = structlog.get_logger(__name__)

SECONDS = 2.0
"""For all of it: a start should not wait longer for a hint."""
MAX_READ = 32
"""Lineages whose newest commit is read."""
MAX_SHOWN = 5
FORMER_COMMAND = "this command under podferry 0.1, in any directory and with any dataset"
FORMER_PROGRAM = "written by podferry 0.1, with arguments that are not known"


@dataclass(frozen=True, slots=True)
class SimilarLineage:
    """A lineage of the same program.

    Attributes:
        newest: Its newest commit.
        option: What takes it: `--lineage NAME`, or `--restore URI` if it was trained on another dataset.
        differences: Between its run and this one, for people; the fewer the closer.
    """

    newest: Commit
    option: str
    differences: tuple[str, ...]

    def __str__(self) -> str:
        newest = self.newest
        when = newest.created.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
        by = f", by {newest.origin}" if newest.origin else ""
        differs = f"; {', '.join(self.differences)}" if self.differences else ""
        return f"{self.option} ({newest.name} of {when}{by}{differs})"


async def similar_lineages(
    destination: Store, own: str, run: ProgramRun, datasets: Sequence[DatasetVersion]
) -> list[str]:
    """The lineages of the same program that have a checkpoint, the most similar first, a line for each.

    After `MAX_SHOWN` a last line has the number of the others. What cannot be found out in time, or at all,
    is a warning in the log.

    Args:
        destination: What contains all lineages.
        own: This run's lineage, which is empty.
        run: The run.
        datasets: Those of the run, as they were listed.
    """
    try:
        async with asyncio.timeout(SECONDS):
            candidates = _candidates(await destination.children(), own, run)
            found = await _newest_commits(destination, candidates[:MAX_READ])
    except (TimeoutError, FerryError) as error:
        reason = str(error) or f"the store took longer than {SECONDS:g} s"
        log.warning("whether other runs of this program have checkpoints is unknown", reason=reason)
        return []
    similar = [_compare(commit, destination, run, datasets) for commit in found]
    ranked = sorted(filter(None, similar), key=lambda one: one.newest.created, reverse=True)
    former = run.former
    ranked.sort(key=lambda one: (one.newest.lineage not in former, len(one.differences)))
    unread = sum(name.startswith(run.prefixes) for name in candidates[MAX_READ:])
    more = len(ranked[MAX_SHOWN:]) + unread
    others = [f"and {more} more: podferry checkpoints ls {shlex.quote(str(destination.uri))}"] if more else []
    return [*map(str, ranked[:MAX_SHOWN]), *others]


def _candidates(children: Sequence[str], own: str, run: ProgramRun) -> list[str]:
    """Lineages that may be of this program: by the former name, by the prefix, then all others."""
    names = [name[:-1] for name in children if name.endswith("/") and name[:-1] != own]
    return sorted(names, key=lambda name: (name not in run.former, not name.startswith(run.prefixes)))


async def _newest_commits(destination: Store, lineages: Sequence[str]) -> list[Commit]:
    found: list[Commit] = []

    async def read(lineage: str) -> None:
        """Add a lineage's newest commit; one that cannot be read is only logged."""
        try:
            commit = await LineageStore(destination, lineage).find(LATEST, decode_commit)
        except FerryError as error:
            log.info("a lineage cannot be read", lineage=lineage, reason=str(error))
            return
        if commit is not None and commit.lineage == lineage:
            found.append(commit)

    await for_each_limited(lineages, read, MAX_READ)
    return found


def _compare(
    newest: Commit, destination: Store, run: ProgramRun, datasets: Sequence[DatasetVersion]
) -> SimilarLineage | None:
    """How a lineage's last run differs from this one; None if it is another program."""
    changes = dataset_changes(newest.datasets, datasets)
    replaced = next((change.before for change in changes if change.replaced), None)
    if not _is_same_program(newest, run, replaced=replaced is not None):
        return None
    data = [f"another dataset: {replaced}"] if replaced else _differences_of_data(changes, newest, datasets)
    name, value = (
        ("restore", str(destination.uri / newest.lineage)) if replaced else ("lineage", newest.lineage)
    )
    return SimilarLineage(newest, run.option(name, value), (*_differences(newest, run), *data))


def _is_same_program(newest: Commit, run: ProgramRun, *, replaced: bool) -> bool:
    """The same path, or the same name with the same arguments or data: the program was moved.

    Many a project has a `train.py`: one with another path, other arguments and other data is not meant.
    """
    origin = newest.origin
    if origin is None:
        return newest.lineage.startswith(run.prefixes)
    if origin.program == run.origin.program and origin.label:
        return True
    data = bool(origin.label and newest.datasets) and not replaced
    return origin.label == run.origin.label and (origin.arguments == run.origin.arguments or data)


def _differences_of_data(
    changes: Sequence[DatasetChange], newest: Commit, datasets: Sequence[DatasetVersion]
) -> list[str]:
    if any(change.before is None or change.now is None for change in changes):
        return ["another number of datasets"]
    if changes:
        return ["its dataset has changed"]
    moved = newest.datasets is not None and {one.uri for one in newest.datasets} != {
        one.uri for one in datasets
    }
    return ["the same data under another URI"] if moved else []


def _differences(newest: Commit, run: ProgramRun) -> list[str]:
    before, now = newest.origin, run.origin
    if before is None:
        former = newest.lineage in run.former
        return [FORMER_COMMAND if former else FORMER_PROGRAM]
    pairs = {
        "another path": before.relative_program != now.relative_program,
        "another directory": before.directory != now.directory,
        "other arguments": before.arguments != now.arguments,
        "another host": before.host != now.host,
    }
    return [text for text, differs in pairs.items() if differs]

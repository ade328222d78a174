"""The newest commit of a lineage, before its data is verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Corrupt, FormatTooNew, NotFound, Problem
from podferry.sidecar.checkpoint.commit.agent_identity import ANNOUNCEMENT, decode_announcement
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.main_kind import newest_main


@dataclass(frozen=True, slots=True)
class LineageHead:
    """The newest commit of a lineage, before its data is verified.

    Attributes:
        store: The lineage at the destination.
        run: The run whose agent last started there, or None.
        commit: The newest commit of the main kind; None if there is none, or if it is not readable.
        problem: Why the commit is not readable.
    """

    store: LineageStore
    run: str | None = None
    commit: Commit | None = None
    problem: Problem | None = None

    @property
    def lineage(self) -> str:
        """Name of the lineage."""
        return self.store.lineage

    @property
    def is_empty(self) -> bool:
        """Whether it has no commit at all."""
        return self.commit is None and self.problem is None

    @property
    def doubt(self) -> Problem | None:
        """Why the newest checkpoint may be incomplete."""
        commit = self.commit
        if commit is None or commit.is_sure:
            return None
        doubts = "; ".join(doubt.reason for doubt in commit.doubts)
        confirm = f"podferry checkpoints confirm {self.store.destination.uri} {self.lineage} {commit.name}"
        remedy = f"If it is complete: {confirm}; or set allow_doubtful"
        return Problem(f"{self.lineage}: its newest checkpoint, {commit.name}, is doubtful", doubts, remedy)

    def belongs_to(self, runs: Sequence[str]) -> bool:
        """Whether one of the runs last wrote here."""
        return self.run in runs or (self.commit is not None and self.commit.run in runs)


async def read_head(store: LineageStore) -> LineageHead:
    """The head of a lineage; one that is not readable has a problem. Raises the store's errors."""
    run = await _last_run(store)
    try:
        return LineageHead(store, run, await _newest_commit(CommitReader(store)))
    except (Corrupt, NotFound, FormatTooNew) as error:
        why = error.problems[0]
        what = f"{store.lineage}: its newest commit cannot be read: {why.what}"
        return LineageHead(store, run, None, Problem(what, why.measured, why.remedy))


async def _newest_commit(reader: CommitReader) -> Commit | None:
    """The newest commit of the main kind, rated, or None; raises why the newest of all cannot be read."""
    history = await reader.history()
    newest = await anext(history.newest_first(), None)
    if newest is None or newest.sequence != history.newest:
        return await reader.read(history.newest) if history.numbers else None
    return await newest_main(history.newest_first())


async def _last_run(store: LineageStore) -> str | None:
    """The run of the agent that started last, or None. Only informative: the commits are the truth."""
    try:
        return (await store.load(ANNOUNCEMENT, decode_announcement)).run
    except (NotFound, Corrupt):
        return None

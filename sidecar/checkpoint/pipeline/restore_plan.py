"""Plans which checkpoint to restore before training starts, and restores it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Refused
from podferry.contract.quantity import format_bytes
from podferry.contract.status import CheckpointStatus, PassedOver, RestoredStatus
from podferry.sidecar.checkpoint.commit.dataset_guard import DatasetGuard
from podferry.sidecar.checkpoint.commit.handover import Handover
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.sidecar.checkpoint.restore.choice import RestoreChoice, RestoreSource, describe_passed_over
from podferry.sidecar.checkpoint.restore.downloader import bytes_to_restore
from podferry.sidecar.checkpoint.restore.leftovers import Leftovers
from podferry.sidecar.checkpoint.restore.restore import RestoreOutcome, restore, restored_status
from podferry.sidecar.staging.volume_capacity import measure
from podferry.sidecar.state.journal import CheckpointRecord

log = structlog.get_logger(__name__)

NONE_IS_SURE = "no checkpoint there is proven complete and intact"
SIMILAR = "other runs of this program have checkpoints there; to resume from one, add its option:"
WORD = "to resume from a doubtful one, set restore to latest or to its name"


@dataclass(frozen=True, slots=True)
class Restored:
    """What training resumes from, if anything.

    Attributes:
        status: The checkpoint.
        fingerprints: XXH3-128 of its files by name, if this worker downloaded it.
        passed_over: Newer commits that it does not resume from, newest first; the newest of them.
        passed_over_count: How many there are.
        leftovers: Where leftovers of an earlier run were moved to.
        dataset_changes: How the datasets differ from those that it was trained on.
        code_changes: How the training's code differs from the one that wrote it.
        similar: If nothing was found: the lineages of the same program.
        damaged: Objects of the own lineage that this agent found damaged: nothing may refer to them.
        resumed: The sequence of the checkpoint, if it is of the own lineage; 0 for none.
        abandoned: The sequences from that one to the newest that training does not continue, if any.
    """

    status: RestoredStatus | None = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    passed_over: tuple[PassedOver, ...] = ()
    passed_over_count: int = 0
    leftovers: tuple[str, ...] = ()
    dataset_changes: tuple[str, ...] = ()
    code_changes: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    resumed: int = 0
    abandoned: tuple[int, int] | None = None

    @classmethod
    def recorded(
        cls, record: CheckpointRecord, dataset_changes: tuple[str, ...], code_changes: tuple[str, ...]
    ) -> Restored:
        """What an earlier worker of this agent found."""
        return cls(
            record.restored,
            passed_over=tuple(record.passed_over),
            passed_over_count=record.passed_over_count,
            leftovers=tuple(record.leftovers),
            dataset_changes=dataset_changes,
            code_changes=code_changes,
            damaged=tuple(record.damaged),
            abandoned=record.abandoned,
        )

    def after(self, newest: Commit) -> Restored:
        """The same, with what is abandoned if this is the newest commit when training begins."""
        left = self.resumed < newest.sequence
        return replace(self, abandoned=(self.resumed, newest.sequence) if left else None)

    def summary(self) -> str:
        """One line for people."""
        return f"{self._resumed()}{self._moved()}"

    def _moved(self) -> str:
        if not self.leftovers:
            return ""
        return f"; leftovers of an earlier run were moved to {Path(self.leftovers[0]).parent}"

    def _resumed(self) -> str:
        passed = describe_passed_over(self.passed_over, self.passed_over_count)
        if self.status is not None:
            found = f"resuming from {self.status.name} (commit {self.status.sequence})"
            more = f"; newer ones were passed over: {passed}" if passed else ""
            return f"{found}{more}{self._changed()}; set restore to never to start from the beginning"
        if passed:
            return f"TRAINING STARTS FROM THE BEGINNING: {NONE_IS_SURE}: {passed}; {WORD}"
        return "\n".join(("training starts from the beginning", *self._similar()))

    def _changed(self) -> str:
        changes = (("DATASET HAS", self.dataset_changes), ("TRAINING CODE HAS", self.code_changes))
        return "".join(f"; {what} CHANGED SINCE: {', '.join(lines)}" for what, lines in changes if lines)

    def show(self, status: CheckpointStatus) -> None:
        """Put all but the checkpoint itself into the agent's status."""
        status.passed_over, status.passed_over_count = list(self.passed_over), self.passed_over_count
        status.leftovers, status.similar_lineages = list(self.leftovers), list(self.similar)
        status.dataset_changes, status.code_changes = list(self.dataset_changes), list(self.code_changes)

    def _similar(self) -> list[str]:
        lines = [f"  {line}" for line in self.similar]
        return [SIMILAR, *lines] if lines else []


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A possible restore from `source`, which is None for nothing, into the checkpoint directory `root`.

    `partial`, on the same file system, is for files not verified yet. `gang` is None if one pod writes all.
    """

    handover: Handover
    gang: GangCoordinator | None
    source: RestoreSource | None
    root: Path
    partial: Path
    rank: int | None

    async def check(self) -> None:
        """Check that a required checkpoint exists and that the one to restore fits.

        Raises:
            Refused, NotFound, FormatTooNew and the store's errors: It does not.
        """
        if self.source is None:
            return
        choice = RestoreChoice(self.source, self.source.known or await self.source.reader.history())
        best = await anext(choice.candidates(), None)
        if best is not None:
            self._check_size(best)
        elif self.source.required:
            raise await choice.failure()

    def _check_size(self, commit: Commit) -> None:
        free = measure(self.root).volume_bytes
        if bytes_to_restore(commit, self.root, self.partial, self.rank) > free:
            measured = f"{commit.name} has {format_bytes(commit.bytes)}, {format_bytes(free)} are free"
            remedy = "Raise checkpoint-size, or set restore to never"
            raise Refused.of("the checkpoint to restore is larger than its volume", measured, remedy)

    async def run(self, guard: DatasetGuard) -> Restored:
        """Wait for an earlier agent that still drains, then download what training resumes from.

        Raises:
            Refused: A commit of the own lineage was trained on another dataset.
            Refused, NotFound, TemporaryError: See `podferry.sidecar.checkpoint.restore.restore.restore`.
        """
        await self.handover.wait()
        if self.gang is not None:
            await self.gang.commit_before_start()
            await self.gang.announce()
        leftovers, outcome, own = Leftovers(self.root), RestoreOutcome(), False
        if self.source is not None:
            own = self.source.reader.store.uri == guard.lineage  # else it is a warm start
            outcome = await restore(
                self.source,
                self.root,
                self.partial,
                self.rank,
                move_away=leftovers.move_away,
                check=guard.check if own else lambda commit: None,
            )
        # DCP's coordinator is the first rank: it alone has the files that are written last.
        gang = self.gang is not None and self.rank != 0
        await asyncio.to_thread(leftovers.move_torn, outcome.commit, gang=gang)
        damaged = tuple(sorted(outcome.damaged)) if own else ()
        found = replace(_restored(outcome), leftovers=tuple(leftovers.moved), damaged=damaged)
        if outcome.commit is None or not own:
            return found
        changes, code = guard.describe_changes(outcome.commit), guard.describe_code(outcome.commit)
        resumed = outcome.commit.sequence
        return replace(found, dataset_changes=changes, code_changes=code, resumed=resumed)


def _restored(outcome: RestoreOutcome) -> Restored:
    """What training resumes from, and say in the log what it does not."""
    passed_over, count, commit = outcome.passed_over, outcome.passed_over_count, outcome.commit
    if commit is None:
        if passed_over:
            log.error(
                "training starts from the beginning", reason=NONE_IS_SURE, remedy=WORD, **_fields(outcome)
            )
        return Restored(passed_over=passed_over, passed_over_count=count)
    if passed_over:
        log.warning("newer checkpoints were passed over", **_fields(outcome))
    log.info("restored", name=commit.name, sequence=commit.sequence, bytes=commit.bytes)
    fingerprints = {file.name: file.xxh128 for file in commit.files}
    return Restored(restored_status(commit, outcome.seconds), fingerprints, passed_over, count)


def _fields(outcome: RestoreOutcome) -> dict[str, object]:
    reasons = {one.name: one.reason for one in outcome.passed_over}
    return {"passed_over": reasons, "count": outcome.passed_over_count}

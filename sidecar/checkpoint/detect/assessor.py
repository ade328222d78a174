"""Assesses candidates one after another, oldest first, each against the saves before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from podferry.contract.destination.commit import Doubt, DoubtKind
from podferry.contract.destination.series import series_of
from podferry.contract.errors import Problem
from podferry.sidecar.checkpoint.detect.candidate import (
    Candidate,
    incomplete_reason,
    uncommittable_reason,
)
from podferry.sidecar.checkpoint.detect.change_times import ChangeTimes
from podferry.sidecar.checkpoint.detect.evidence import Evidence, Seen
from podferry.sidecar.checkpoint.detect.former_names import (
    inherited,
    twins,
)
from podferry.sidecar.checkpoint.detect.history import Save, SaveHistory, written_files
from podferry.sidecar.checkpoint.detect.inspection import Inspection
from podferry.sidecar.checkpoint.detect.judgement import SETTLED_BY_SUCCESS, is_self_contained, judge
from podferry.sidecar.checkpoint.detect.later_save import follows, patience, proves
from podferry.sidecar.checkpoint.detect.missing_files import is_proven_by_framework
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.detect.trainer_processes import TrainerProcesses
from podferry.sidecar.checkpoint.detect.watched_saves import WatchedSaves


@dataclass(frozen=True, slots=True)
class TrainerContext:
    """What the agent knows about the trainer whose files it watches.

    Attributes:
        gang: Other pods have the other parts of each checkpoint, and this one is not the coordinator's.
        whole: No other pod has a part of any checkpoint.
        one_life: The trainer cannot restart while this agent lives.
        processes: Those of the trainer, which show whether it has; None if they are not known.
        open_files: Says which files are open for writing; None if nobody asks.
    """

    gang: bool = False
    whole: bool = False
    one_life: bool = False
    processes: TrainerProcesses | None = None
    open_files: OpenFiles | None = None


UNKNOWN = TrainerContext()
"""Nothing is known about the trainer."""


class Assessor:
    """Judges candidates and remembers the accepted ones.

    Attributes:
        proven: Accepted doubtful versions that were proven complete since `begin`.

    Args:
        root: The checkpoint directory.
        context: What is known about the trainer.
    """

    def __init__(self, root: Path, context: TrainerContext) -> None:
        self.proven: list[Candidate] = []
        self._one_life, self._processes, self._gang = context.one_life, context.processes, context.gang
        self._history, self._watched = SaveHistory(), WatchedSaves()
        self._inspection = Inspection(root, self._history, context.open_files, whole=context.whole)

    @property
    def times(self) -> ChangeTimes:
        """Which change times show a rename."""
        return self._inspection.times

    def begin(self, settled: Iterable[Candidate], present: Mapping[str, Candidate]) -> None:
        """Begin a scan.

        Args:
            settled: The versions that need no upload any more.
            present: What the scan found.
        """
        self.proven = []
        self._history.update(settled)
        self._inspection.begin(present.values())
        self._watched.begin(self._history, present.values())

    def look_at_processes(self) -> None:
        """Look which processes of the trainer live: one that has restarted may not live for long."""
        if self._processes is not None:
            self._processes.look()

    def saw(self, candidate: Candidate) -> None:
        """It is in the directory now."""
        self._watched.saw(candidate, self._history)

    async def incomplete(self, candidate: Candidate, *, marked: bool) -> Problem | None:
        """Why a candidate is certainly incomplete: by its names, unless it is marked, or by a format."""
        reason = uncommittable_reason(candidate) if marked else incomplete_reason(candidate, gang=self._gang)
        if reason is None:
            reason = await self._inspection.defect(candidate)
        return Problem(f"{candidate.name} is not complete", reason) if reason is not None else None

    async def judge(
        self,
        candidate: Candidate,
        seen: Seen,
        *,
        marked: bool = False,
        quiet: bool = True,
        rested: float = float("inf"),
    ) -> Save:
        """A complete candidate as a save, with its doubts.

        Earlier saves are settled first: those that saves before this one prove, as it has begun, and those
        that it proves itself. It may be the beginning of a save: it proves others if it is sure without them,
        or has rested. A quiet one that is one file at the top is no beginning: nothing is missing next to it.

        Args:
            candidate: One that is not incomplete.
            seen: What the watch has seen of it.
            marked: The trainer marked it: it is sure.
            quiet: Its long pause is over, or nothing writes any more.
            rested: Seconds since its last change; 0 before the long pause is over.
        """
        evidence = await self._inspection.gather(candidate, seen)
        for later in self._history.earlier(candidate):
            if follows(candidate, later, seen.emptied) and self._watched.has_ended(later, candidate):
                self._prove_all(self._proven_by(later))
        alone = self._compare(candidate, seen, evidence, marked=marked)
        proven = self._proven_by(alone)
        whole = alone.is_sure or (quiet and is_self_contained(candidate))
        self._prove_all(save for save in proven if whole or _has_rested(rested, candidate, save))
        return self._compare(candidate, seen, evidence, marked=marked)

    def _compare(self, candidate: Candidate, seen: Seen, evidence: Evidence, *, marked: bool) -> Save:
        """A candidate as a save, compared with those before it as they are now."""
        earlier = self._history.earlier(candidate)
        framework = is_proven_by_framework(candidate.name, candidate.data_files)
        judged = judge(candidate, evidence, earlier, framework=framework)
        former = inherited(candidate, self._history)
        if former is not None and not evidence.open:
            judged = former
        left_out = tuple(Doubt(DoubtKind.LEFT_OUT, reason) for reason in seen.left_out)
        doubts = () if marked else judged + left_out
        written, unproven = written_files(candidate, earlier), frozenset(evidence.unproven)
        judged_one = replace(candidate, doubts=doubts)
        return Save(judged_one, written, unproven, evidence.members, evidence.may_change, seen.emptied)

    async def look_again(
        self,
        present: Mapping[str, Candidate],
        rested: Callable[[Candidate], float],
        seen: Callable[[Candidate], Seen],
    ) -> float:
        """Judge accepted, doubtful saves again that have rested for long enough to prove others by now.

        And all others if this scan has proven any: a save after one of these may be sure now.

        Returns:
            Seconds until the next one has; infinite if none waits.
        """
        left, news = float("inf"), bool(self.proven)
        for save in [one for one in self._history if not one.is_sure]:
            candidate = present.get(save.candidate.name)
            if candidate is None or not candidate.is_version_of(save.candidate):
                continue
            waits = [patience(candidate, one) for one in self._proven_by(save)]
            now = rested(candidate)
            left = min([left, *(wait - now for wait in waits if wait > now)])
            due = news or any(now >= wait for wait in waits)
            if not due:
                continue
            if (await self.judge(candidate, seen(candidate), quiet=now > 0, rested=now)).is_sure:
                self._prove(save)
        return left

    def _proven_by(self, later: Save) -> list[Save]:
        """The doubtful saves before a later one that it proves, if it is complete."""
        found = self._provable(later.candidate, self._history.earlier(later.candidate))
        return [save for save in found if self._is_proof(later, save)]

    def _is_proof(self, later: Save, save: Save) -> bool:
        one_life = self._is_one_life(save)
        return proves(later.candidate, save, one_life=one_life, emptied=later.emptied, members=later.members)

    def _is_one_life(self, save: Save) -> bool:
        """Whether its trainer has not restarted since: an earlier run may have left it torn."""
        known = self._processes is not None and self._processes.all_older_than(save.candidate.changed_ns)
        return known or (self._one_life and self.times.is_new(save.candidate.changed_ns))

    def _provable(self, candidate: Candidate, earlier: Iterable[Save]) -> Iterator[Save]:
        """The doubtful saves, newest first, but for those that their trainer continued afterwards.

        A part of step 1, committed while the trainer paused, is not proven by the same part of step 2.
        """
        for save in earlier:
            if not save.is_sure and self._watched.has_ended(save, candidate):
                yield save

    async def proofs(
        self, candidate: Candidate, seen: Seen, waiting: Sequence[Save], *, marked: bool
    ) -> list[Save]:
        """The doubtful saves, not accepted yet, that a later candidate proves.

        It is sure by itself, or it has begun after another one of them that does. Such ones prove accepted
        saves, too, which are settled.
        """
        alone = self._compare(candidate, seen, await self._inspection.gather(candidate, seen), marked=marked)
        before = [one for one in waiting if _is_next(candidate, one, seen)]
        for one in before:
            self._prove_all(self._proven_by(one))
        later = [*before, alone] if alone.is_sure else before
        return [save for save in waiting if any(self._is_proof(one, save) for one in later)]

    def accept(self, save: Save) -> None:
        """Remember a save that is held from now on."""
        self._history.add(save)

    async def settle_by_success(self) -> None:
        """The trainer has ended successfully: it has written what it meant to write.

        That says nothing about files that another process still writes: one that it has left behind. Nor
        about what was written before it started.
        """
        for save in filter(self._watched.was_the_end, self._history.doubtful()):
            kinds = {doubt.kind for doubt in save.candidate.doubts}
            settled = kinds <= SETTLED_BY_SUCCESS and self.times.is_new(save.candidate.changed_ns)
            if settled and not await self._inspection.is_open(save.candidate):
                self._prove(save)

    def settle_marked(self, is_marked: Callable[[Candidate], bool]) -> None:
        """The trainer has marked some of the accepted versions meanwhile."""
        for save in self._history.doubtful():
            if is_marked(save.candidate):
                self._prove(save)

    def _prove_all(self, saves: Iterable[Save]) -> None:
        for save in saves:
            self._prove(save)

    def _prove(self, save: Save) -> None:
        for one in (save, *twins(save, self._history)):
            self._history.settle(one)
            self.proven.append(one.candidate)


def _has_rested(rested: float, candidate: Candidate, save: Save) -> bool:
    return rested > 0 and rested >= patience(candidate, save)


def _is_next(candidate: Candidate, save: Save, seen: Seen) -> bool:
    """Whether a candidate is a later save of the same series."""
    same = series_of(candidate.name) == series_of(save.candidate.name)
    return same and follows(candidate, save, seen.emptied)

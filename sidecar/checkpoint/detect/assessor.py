"""Assesses candidates one after another, oldest first, each against the saves before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from podferry.contract.destination.commit import Doubt, DoubtKind
from podferry.contract.destination.series import series_of
from podferry.contract.errors import Problem
from podferry.sidecar.checkpoint.detect.candidate import (
    Candidate,
    Version,
    incomplete_reason,
    uncommittable_reason,
)
from podferry.sidecar.checkpoint.detect.change_times import ChangeTimes
from podferry.sidecar.checkpoint.detect.evidence import Evidence, Seen, gather
from podferry.sidecar.checkpoint.detect.former_names import (
    inherited,
    twins,
    without_moves_of_checkpoints,
)
from podferry.sidecar.checkpoint.detect.history import Save, SaveHistory, overwritten_files, written_files
from podferry.sidecar.checkpoint.detect.judgement import SETTLED_BY_SUCCESS, is_self_contained, judge
from podferry.sidecar.checkpoint.detect.later_save import follows, patience, proves
from podferry.sidecar.checkpoint.detect.missing_files import is_proven_by_framework
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.detect.trainer_processes import TrainerProcesses


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
        times: Which change times show a rename.

    Args:
        root: The checkpoint directory.
        context: What is known about the trainer.
    """

    def __init__(self, root: Path, context: TrainerContext) -> None:
        self.proven: list[Candidate] = []
        self.times = ChangeTimes()
        self._root, self._one_life, self._processes = root, context.one_life, context.processes
        self._gang, self._whole = context.gang, context.whole
        self._history, self._open_files = SaveHistory(), context.open_files
        self._continued: set[Version] = set()
        self._unwatched: set[Version] | None = None
        self._renamed_open: set[Version] = set()

    def begin(self, settled: Iterable[Candidate], present: Mapping[str, Candidate]) -> None:
        """Begin a scan.

        Args:
            settled: The versions that need no upload any more.
            present: What the scan found.
        """
        self.proven = []
        self._history.update(settled)
        if self._renamed_open:
            self._renamed_open &= {one.version for one in present.values()}
        if self._unwatched is None:
            versions = {one.version for one in present.values()}
            self._unwatched = {save.candidate.version for save in self._history} - versions
        if self._continued:
            self._continued &= {save.candidate.version for save in self._history}

    def look_at_processes(self) -> None:
        """Look which processes of the trainer live: one that has restarted may not live for long."""
        if self._processes is not None:
            self._processes.look()

    def saw(self, candidate: Candidate) -> None:
        """It is in the directory now: earlier versions of its name were not the end of their save.

        Neither was a checkpoint whose files all belong to this one by now: a configuration that is written
        before the weights next to it.
        """
        names = candidate.data_files.keys()
        for one in (save.candidate for save in self._history):
            continues = one.name == candidate.name or one.data_files.keys() <= names
            if continues and not one.is_version_of(candidate):
                self._continued.add(one.version)

    async def incomplete(self, candidate: Candidate, *, marked: bool) -> Problem | None:
        """Why a candidate is certainly incomplete: by its names, unless it is marked, or by a format."""
        reason = uncommittable_reason(candidate) if marked else incomplete_reason(candidate, gang=self._gang)
        if reason is None:  # the history is not asked: it may have a whole archive read, for no defect
            reason = (await self._read(candidate, Seen())).defect
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
        evidence = await self._gather(candidate, seen)
        for later in self._history.earlier(candidate):
            if follows(candidate, later, seen.emptied) and self._has_ended(later, candidate):
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
            if not save.is_sure and self._has_ended(save, candidate):
                yield save

    def _has_ended(self, save: Save, later: Candidate) -> bool:
        """Whether nothing was seen to continue a save before a later one, which may replace it."""
        own = save.candidate.name == later.name
        return self._was_watched(save) if own else self._was_the_end(save)

    def _was_watched(self, save: Save) -> bool:
        """Whether this worker has watched its files since: what was not there at first, nobody has."""
        return save.candidate.version not in (self._unwatched or ())

    def _was_the_end(self, save: Save) -> bool:
        """Whether its trainer is known not to have continued it."""
        return self._was_watched(save) and save.candidate.version not in self._continued

    async def proofs(
        self, candidate: Candidate, seen: Seen, waiting: Sequence[Save], *, marked: bool
    ) -> list[Save]:
        """The doubtful saves, not accepted yet, that a later candidate proves.

        It is sure by itself, or it has begun after another one of them that does. Such ones prove accepted
        saves, too, which are settled.
        """
        alone = self._compare(candidate, seen, await self._gather(candidate, seen), marked=marked)
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
        for save in filter(self._was_the_end, self._history.doubtful()):
            kinds = {doubt.kind for doubt in save.candidate.doubts}
            if kinds <= SETTLED_BY_SUCCESS and self.times.is_new(save.candidate.changed_ns):
                found = await asyncio.to_thread(self._with_open_files, save.candidate, Evidence())
                if not found.open:
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

    async def _gather(self, candidate: Candidate, seen: Seen) -> Evidence:
        seen = without_moves_of_checkpoints(seen, candidate, self._history.is_known)
        same_name = self._history.of_name(candidate.name)
        seen = replace(seen, overwritten=overwritten_files(candidate, same_name, seen.emptied))
        found = await asyncio.to_thread(self._with_open_files, candidate, await self._read(candidate, seen))
        if found.renamed and found.open:
            self._renamed_open.add(candidate.version)
        return replace(found, renamed=found.renamed and candidate.version not in self._renamed_open)

    async def _read(self, candidate: Candidate, seen: Seen) -> Evidence:
        return await asyncio.to_thread(gather, self._root, candidate, self.times, seen, whole=self._whole)

    def _with_open_files(self, candidate: Candidate, found: Evidence) -> Evidence:
        """Ask the machine which files are still open: one that is known not to be needs no close."""
        if self._open_files is None or found.defect is not None:
            return found
        paths = {self._root / name: name for name in candidate.data_files}
        answers = self._open_files.look(paths)
        opened = frozenset(paths[path] for path, is_open in answers.items() if is_open)
        shut = frozenset(paths[path] for path, is_open in answers.items() if is_open is False)
        return replace(found, open=opened, unclosed=found.unclosed - shut)


def _has_rested(rested: float, candidate: Candidate, save: Save) -> bool:
    return rested > 0 and rested >= patience(candidate, save)


def _is_next(candidate: Candidate, save: Save, seen: Seen) -> bool:
    """Whether a candidate is a later save of the same series."""
    same = series_of(candidate.name) == series_of(save.candidate.name)
    return same and follows(candidate, save, seen.emptied)

"""Assesses candidates one after another, oldest first, each against the saves before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from podferry.contract.destination.commit import Doubt, DoubtKind
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
from podferry.sidecar.checkpoint.detect.judgement import SETTLED_BY_SUCCESS, judge
from podferry.sidecar.checkpoint.detect.later_save import proves
from podferry.sidecar.checkpoint.detect.missing_files import is_proven_by_framework
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles


@dataclass(frozen=True, slots=True)
class TrainerContext:
    """What the agent knows about the trainer whose files it watches.

    Attributes:
        gang: Other pods have the other parts of each checkpoint, and this one is not the coordinator's.
        whole: No other pod has a part of any checkpoint.
        one_life: The trainer cannot restart while this agent lives.
        open_files: Says which files are open for writing; None if nobody asks.
    """

    gang: bool = False
    whole: bool = False
    one_life: bool = False
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
        self._root, self._one_life = root, context.one_life
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
        names = uncommittable_reason(candidate) if marked else incomplete_reason(candidate, gang=self._gang)
        reason = names or (await self._gather(candidate, Seen())).defect
        return Problem(f"{candidate.name} is not complete", reason) if reason is not None else None

    async def judge(
        self, candidate: Candidate, seen: Seen, *, marked: bool = False, may_prove: bool = True
    ) -> Save:
        """A complete candidate as a save, with its doubts.

        Earlier saves that it proves are settled first. If the trainer may have restarted, it may prove them
        only after the long pause: it could be the beginning of a save itself.

        Args:
            candidate: One that is not incomplete.
            seen: What the watch has seen of it.
            marked: The trainer marked it: it is sure.
            may_prove: It has been quiet for the long pause.
        """
        seen = without_moves_of_checkpoints(seen, candidate, self._history.is_known)
        same_name = self._history.of_name(candidate.name)
        seen = replace(seen, overwritten=overwritten_files(candidate, same_name, seen.emptied))
        evidence = await self._gather(candidate, seen)
        earlier = self._history.earlier(candidate)
        for save in self._provable(candidate, earlier):
            one_life = self._is_of_one_life(save)
            may = may_prove or one_life
            emptied, members = seen.emptied, evidence.members
            if may and proves(candidate, save, one_life=one_life, emptied=emptied, members=members):
                self._prove(save)
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
        return Save(judged_one, written, unproven, evidence.members, evidence.may_change)

    def _provable(self, candidate: Candidate, earlier: Iterable[Save]) -> Iterator[Save]:
        """The doubtful saves, newest first, but for those that their trainer continued afterwards.

        A part of step 1, committed while the trainer paused, is not proven by the same part of step 2.
        """
        for save in earlier:
            own = save.candidate.name == candidate.name
            if not save.is_sure and (self._was_watched(save) if own else self._was_the_end(save)):
                yield save

    def _was_watched(self, save: Save) -> bool:
        """Whether this worker has watched its files since: what was not there at first, nobody has."""
        return save.candidate.version not in (self._unwatched or ())

    def _was_the_end(self, save: Save) -> bool:
        """Whether its trainer is known not to have continued it."""
        return self._was_watched(save) and save.candidate.version not in self._continued

    def _is_of_one_life(self, save: Save) -> bool:
        """Whether the trainer cannot have restarted since: an earlier run may have left the save torn."""
        return self._one_life and self.times.is_new(save.candidate.changed_ns)

    def is_proof(self, candidate: Candidate, save: Save) -> bool:
        """Whether a later candidate proves a doubtful save that is not accepted yet."""
        return self._is_of_one_life(save) and proves(candidate, save, one_life=True)

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

    def _prove(self, save: Save) -> None:
        for one in (save, *twins(save, self._history)):
            self._history.settle(one)
            self.proven.append(one.candidate)

    async def _gather(self, candidate: Candidate, seen: Seen) -> Evidence:
        found = await asyncio.to_thread(gather, self._root, candidate, self.times, seen, whole=self._whole)
        found = await asyncio.to_thread(self._with_open_files, candidate, found)
        if found.renamed and found.open:
            self._renamed_open.add(candidate.version)
        return replace(found, renamed=found.renamed and candidate.version not in self._renamed_open)

    def _with_open_files(self, candidate: Candidate, found: Evidence) -> Evidence:
        """Ask the machine which files are still open: one that is known not to be needs no close."""
        if self._open_files is None or found.defect is not None:
            return found
        paths = {self._root / name: name for name in candidate.data_files}
        answers = self._open_files.look(paths)
        opened = frozenset(paths[path] for path, is_open in answers.items() if is_open)
        shut = frozenset(paths[path] for path, is_open in answers.items() if is_open is False)
        return replace(found, open=opened, unclosed=found.unclosed - shut)

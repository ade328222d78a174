"""One pass over the candidates of a scan, oldest first: which are accepted, and why the others are not.

No checkpoint overtakes an older one that only has to stay quiet for longer: commits follow the order of the
last changes, so that the newest commit is never followed by an older one. What waited for an older one is
accepted in the same pass as that one: in the next pass it would follow newer ones. But none waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from podferry.contract.errors import Problem
from podferry.sidecar.checkpoint.detect.assessor import Assessor
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.evidence import Seen
from podferry.sidecar.checkpoint.detect.history import Save

MARK_IT = "Mark it with `podferry checkpoint done`, or leave podferry.io/complete at its default"


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A candidate that is not accepted yet.

    Attributes:
        candidate: What it is about.
        problem: Why it waits.
        save: If it is doubtful and only has to be quiet for longer: with its doubts.
    """

    candidate: Candidate
    problem: Problem
    save: Save | None = None


@dataclass(slots=True)
class ScanPass:
    """The decisions of one scan; call `examine` for each candidate in the order of their last change.

    Attributes:
        assessor: Judges them.
        is_quiet: Whether a candidate has been unchanged for the short pause or, if True, for the long one.
        seen: What the watch has seen of a candidate.
        is_marked: Whether the trainer marked exactly this version.
        rested: Seconds that a candidate has been unchanged; 0 before its long pause is over.
        starves: Whether a candidate is written again and again before its long pause is over.
        is_overdue: Whether a candidate has waited for older ones for too long.
        only_marked: Nothing else is accepted.
        complete: What is accepted, with its doubts.
        not_ready: Why the others are not accepted, by name.
        pausing: Those that need only stay quiet; True for the long pause.
        held_up: Those that need only wait for an older one, and have not changed since.
    """

    assessor: Assessor
    is_quiet: Callable[[Candidate, bool], bool]
    seen: Callable[[Candidate], Seen]
    is_marked: Callable[[Candidate], bool]
    rested: Callable[[Candidate], float]
    starves: Callable[[Candidate], bool]
    is_overdue: Callable[[Candidate], bool]
    only_marked: bool
    complete: list[Candidate] = field(default_factory=list)
    not_ready: dict[str, Problem] = field(default_factory=dict)
    pausing: list[tuple[Candidate, bool]] = field(default_factory=list)
    held_up: list[Candidate] = field(default_factory=list)
    _active: Candidate | None = None
    _waiting: list[_Waiting] = field(default_factory=list)

    async def examine(self, candidate: Candidate) -> None:
        """Accept a candidate, or record why not."""
        self.assessor.saw(candidate)
        marked = self.is_marked(candidate)
        problem = self._pause(candidate, marked=marked)
        problem = problem or await self.assessor.incomplete(candidate, marked=marked)
        if problem is not None:
            self.not_ready[candidate.name] = problem
            return
        await self._accept_waiting(candidate)
        await self._judge(candidate)

    def _pause(self, candidate: Candidate, *, marked: bool) -> Problem | None:
        name = candidate.name
        if self.only_marked and not marked:
            # It may never be marked, so newer ones do not wait for it.
            return Problem(f"{name} has not been marked", remedy=MARK_IT)
        if not (marked or self.is_quiet(candidate, False)):
            self._active = self._active or candidate
            self.pausing.append((candidate, False))
            return Problem(f"{name} is still being written")
        if self._active is not None:
            self.held_up.append(candidate)
        if self._active is not None and not self.is_overdue(candidate):
            return Problem(f"{name} waits for {self._active.name}, which is older")
        return None

    async def _judge(self, candidate: Candidate) -> None:
        """Accept what is sure, and what is doubtful after the long pause, or if it would never have one."""
        name, marked = candidate.name, self.is_marked(candidate)
        long = marked or self.is_quiet(candidate, True)
        seen, rested = self.seen(candidate), self.rested(candidate)
        save = await self.assessor.judge(candidate, seen, marked=marked, quiet=long, rested=rested)
        if not save.is_sure and not long and not self.starves(candidate):
            self.pausing.append((candidate, True))
            self._wait(_Waiting(candidate, Problem(f"{name} is still being written"), save))
        elif self._waiting and not self.is_overdue(candidate):
            self.held_up.append(candidate)
            older = self._waiting[0].candidate.name
            self._wait(_Waiting(candidate, Problem(f"{name} waits for {older}, which is older")))
        else:
            self._accept(save)

    def _wait(self, one: _Waiting) -> None:
        self._waiting.append(one)
        self.not_ready[one.candidate.name] = one.problem

    async def _accept_waiting(self, later: Candidate) -> None:
        """Accept the older ones that a later save proves, without the rest of their pause, in their order.

        The others are judged again, now with these before them.
        """
        saves, marked = [one.save for one in self._waiting if one.save], self.is_marked(later)
        if not saves:
            return
        settled = len(self.assessor.proven)
        found = await self.assessor.proofs(later, self.seen(later), saves, marked=marked)
        proven = [one for one in self._waiting if one.save in found]
        first = bool(proven) and proven[0] is self._waiting[0]
        if not first and len(self.assessor.proven) == settled:
            return
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            del self.not_ready[one.candidate.name]
            if one.save is not None and one in proven and not self._waiting:
                self._accept(one.save.settled())
            else:
                await self._judge(one.candidate)

    def _accept(self, save: Save) -> None:
        self.assessor.accept(save)
        self.complete.append(save.candidate)

"""One pass over the candidates of a scan, oldest first: which are accepted, and why the others are not.

No checkpoint overtakes an older one that only has to stay quiet for longer: commits follow the order of the
last changes, so that the newest commit is never followed by an older one.
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


@dataclass(slots=True)
class ScanPass:
    """The decisions of one scan; call `examine` for each candidate in the order of their last change.

    Attributes:
        assessor: Judges them.
        is_quiet: Whether a candidate has been unchanged for the short pause or, if True, for the long one.
        seen: What the watch has seen of a candidate.
        is_marked: Whether the trainer marked exactly this version.
        starves: Whether a candidate is written again and again before its long pause is over.
        only_marked: Nothing else is accepted.
        complete: What is accepted, with its doubts.
        not_ready: Why the others are not accepted, by name.
        pausing: Those that need only stay quiet; True for the long pause.
    """

    assessor: Assessor
    is_quiet: Callable[[Candidate, bool], bool]
    seen: Callable[[Candidate], Seen]
    is_marked: Callable[[Candidate], bool]
    starves: Callable[[Candidate], bool]
    only_marked: bool
    complete: list[Candidate] = field(default_factory=list)
    not_ready: dict[str, Problem] = field(default_factory=dict)
    pausing: list[tuple[Candidate, bool]] = field(default_factory=list)
    _active: Candidate | None = None
    _waiting: list[Save] = field(default_factory=list)

    async def examine(self, candidate: Candidate) -> None:
        """Accept a candidate, or record why not."""
        self.assessor.saw(candidate)
        marked = self.is_marked(candidate)
        problem = self._pause(candidate, marked=marked)
        problem = problem or await self.assessor.incomplete(candidate, marked=marked)
        problem = problem or await self._judge(candidate, marked=marked)
        if problem is not None:
            self.not_ready[candidate.name] = problem

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
            return Problem(f"{name} waits for {self._active.name}, which is older")
        return None

    async def _judge(self, candidate: Candidate, *, marked: bool) -> Problem | None:
        """Accept what is sure, and what is doubtful after the long pause, or if it would never have one."""
        long = marked or self.is_quiet(candidate, True)
        self._accept_waiting(candidate)
        save = await self.assessor.judge(candidate, self.seen(candidate), marked=marked, may_prove=long)
        if not save.is_sure and not long and not self.starves(candidate):
            self._waiting.append(save)
            self.pausing.append((candidate, True))
            return Problem(f"{candidate.name} is still being written")
        if self._waiting:
            return Problem(f"{candidate.name} waits for {self._waiting[0].candidate.name}, which is older")
        self._accept(save)
        return None

    def _accept_waiting(self, later: Candidate) -> None:
        """Accept the older ones that a later save proves, without the rest of their pause."""
        for save in [one for one in self._waiting if self.assessor.is_proof(later, one)]:
            self._waiting.remove(save)
            del self.not_ready[save.candidate.name]
            self._accept(save.settled())

    def _accept(self, save: Save) -> None:
        self.assessor.accept(save)
        self.complete.append(save.candidate)

"""The end of an agent: how long it may take, and what is said of it at the destination and to Kubernetes."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from podferry.contract.agent_notes import DrainPhase
from podferry.contract.api import Durability
from podferry.contract.errors import Problem
from podferry.sidecar.checkpoint.commit.handover import Handover
from podferry.sidecar.control.termination_message import leave_message
from podferry.sidecar.state.journal import Journal

log = structlog.get_logger(__name__)


class DrainDeadline:
    """The drain's clock and its last words. The clock outlives a worker that is killed while it drains.

    Args:
        journal: Where the clock is kept.
        grace: Seconds that the drain may take from its beginning.
        monotonic: The machine's clock.

    Attributes:
        handover: Where notes are left, None where there are no checkpoints.
    """

    def __init__(
        self, journal: Journal, grace: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._journal, self._grace, self._monotonic = journal, grace, monotonic
        if journal.agent.drain_until is not None and not self.left():
            # An earlier end was none: the container alone was started again.
            journal.agent.drain_until, journal.agent.newest_first = None, False
        self.handover: Handover | None = None

    def left(self) -> float:
        """Seconds that are left of the grace: all of it before the end has begun."""
        until = self._journal.agent.drain_until
        return self._grace if until is None else max(until - self._monotonic(), 0.0)

    async def begin(self) -> None:
        """Start the clock, once, and tell the next agent to wait."""
        if self._journal.agent.drain_until is not None:
            return
        self._journal.agent.drain_until = self._monotonic() + self._grace
        self._journal.save()
        if self.handover is not None:
            await self.handover.write_note(DrainPhase.DRAINING, self._grace)

    def _too_late(self) -> Problem:
        remedy = "Raise podferry.io/grace, or the policy's bound on it"
        return Problem("the time was used up", f"{self._grace:.0f} s", remedy)

    async def conclude(self, answer: Durability) -> None:
        """Say what did not become durable: in the log, to Kubernetes, and in a note at the destination."""
        problems = answer.problems if answer.problems or answer.durable else (self._too_late(),)
        if not answer.durable:
            reasons = [str(problem) for problem in problems]
            log.error("not durable at the end", checkpoints=answer.pending, reasons=reasons)
            names = ", ".join(answer.pending) or "what lies in the checkpoint directory"
            leave_message("\n".join([f"podferry: not durable at the end: {names}", *reasons]))
        if self.handover is not None:
            await self.handover.write_note(DrainPhase.ENDED, pending=answer.pending, problems=problems)

"""The drain's deadline, and the reports about its end: in the log, at the destination, to Kubernetes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from podferry.contract.destination.agent_notes import DrainPhase
from podferry.contract.errors import Problem
from podferry.contract.http_api import Durability
from podferry.sidecar.control.termination_message import leave_message
from podferry.sidecar.state.journal import Journal

if TYPE_CHECKING:
    from podferry.sidecar.checkpoint.commit.handover import Handover

log = structlog.get_logger(__name__)

IN_POD = "Raise podferry.io/grace, or the policy's bound on it"


class DrainDeadline:
    """The drain's clock and its final reports. The clock survives a worker that is killed during the drain.

    1. `begin`, once the pod's end is known; only the first call counts.
    2. `left` while draining.
    3. `conclude`.

    The journal stores the clock; `grace` is in seconds.

    Attributes:
        handover: Writes the notes at the destination; None if no checkpoints are uploaded.
    """

    def __init__(
        self,
        journal: Journal,
        grace: float,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        in_pod: bool = True,
    ) -> None:
        self._journal, self._grace, self._monotonic = journal, grace, monotonic
        self._remedy = IN_POD if in_pod else "`podferry leftovers ls` shows what is left"
        if journal.agent.drain_until is not None and not self.left():
            # That drain was not the pod's end: only the container was restarted.
            journal.agent.drain_until, journal.agent.newest_first = None, False
        self.handover: Handover | None = None

    def left(self) -> float:
        """Seconds left of the grace period: all of it before the drain has begun."""
        until = self._journal.agent.drain_until
        return self._grace if until is None else max(until - self._monotonic(), 0.0)

    async def begin(self) -> None:
        """Start the clock, once, and make the next agent wait."""
        if self._journal.agent.drain_until is not None:
            return
        self._journal.agent.drain_until = self._monotonic() + self._grace
        self._journal.save()
        if self.handover is not None:
            await self.handover.write_note(DrainPhase.DRAINING, self._grace)

    async def conclude(self, answer: Durability) -> None:
        """Report what is not durable: in the log, to Kubernetes, and in a note at the destination."""
        problems = answer.problems
        if not answer.durable:
            problems = problems or (
                Problem("the grace period was used up", f"{self._grace:.0f} s", self._remedy),
            )
            reasons = [str(problem) for problem in problems]
            log.error("not durable at the end", checkpoints=answer.pending, reasons=reasons)
            names = ", ".join(answer.pending) or "the contents of the checkpoint directory"
            leave_message("\n".join([f"podferry: not durable at the end: {names}", *reasons]))
        elif answer.last is not None and answer.last.doubts:
            doubts = list(answer.last.doubts)
            log.warning("the last checkpoint is doubtful", name=answer.last.name, doubts=doubts)
            leave_message(
                "\n".join([f"podferry: the last checkpoint, {answer.last.name}, is doubtful", *doubts])
            )
        if self.handover is not None:
            await self.handover.write_note(DrainPhase.ENDED, pending=answer.pending, problems=problems)

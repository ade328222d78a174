"""One run of the flow, from the events that it prints, and the kill of its training."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from demo.failure import DemoError
from demo.flow import Flow, FlowEvent, StepBegan, StepEnded
from demo.ledger import Ledger
from podferry.pipelines.digits_events import Began, Left, Opened, Saved, Trained

NOTEWORTHY = 0.2
"""Seconds for which training was stopped before it was killed: less goes without saying."""
PATIENCE = 60.0
"""Seconds that checkpoints may take to become durable; polling takes five where inotify takes one."""


@dataclass(slots=True)
class Span:
    """Something that took a while. Seconds since the epoch; `ended` is None until it has ended."""

    name: str
    began: float
    ended: float | None = None
    succeeded: bool = True


@dataclass(frozen=True, slots=True)
class Killed:
    """Training was killed.

    Attributes:
        pid: Its process.
        epoch: The one that ran.
        durable: Checkpoints that were durable then.
        held: Seconds for which it had been stopped before.
    """

    pid: int
    epoch: int
    durable: int
    held: float = 0.0


@dataclass(slots=True)
class Attempt:
    """What a run of the flow has reported.

    Attributes:
        number: 1, 2.
        began, ended: Seconds since the epoch.
        steps: KFP's, in their order.
        epochs: Those that began; the last has no end where training was killed.
        opened: When and with what training started.
        saved: Checkpoints in the order of writing.
        left: The end of training.
        killed: How it was killed, or None.
        killed_at: When, seconds since the epoch.
    """

    number: int
    began: float
    ended: float = 0.0
    steps: list[Span] = field(default_factory=list)
    epochs: list[Span] = field(default_factory=list)
    opened: Opened | None = None
    saved: list[Saved] = field(default_factory=list)
    left: Left | None = None
    killed: Killed | None = None
    killed_at: float = 0.0

    def record(self, at: float, event: FlowEvent) -> None:
        """Record an event of the flow."""
        match event:
            case StepBegan(name):
                self.steps.append(Span(name, at))
            case StepEnded(name, succeeded):
                step = next(step for step in reversed(self.steps) if step.name == name)
                step.ended, step.succeeded = at, succeeded
            case Opened():
                self.opened = event
            case Began():
                self.epochs.append(Span(str(event.epoch), event.at))
            case Trained():
                self.epochs[-1].ended = event.at
            case Saved():
                self.saved.append(event)
            case Left():
                self.left = event

    def step(self, name: str) -> Span | None:
        """The step of that name, or None if it was not reached."""
        return next((step for step in self.steps if step.name == name), None)

    @property
    def blocked(self) -> float:
        """Seconds that training stood still for checkpoints: writing them, and waiting at its end."""
        return sum(saved.blocked for saved in self.saved) + (self.left.blocked if self.left else 0.0)


@dataclass(frozen=True, slots=True)
class Kill:
    """When to kill training.

    Attributes:
        epoch: During this one.
        durable: Not before this many checkpoints are durable.
        ledger: Counts them.
    """

    epoch: int
    durable: int
    ledger: Ledger

    def strike(self, attempt: Attempt) -> Killed:
        """End the training process as a machine that fails does: no signal handler, no `finally`.

        It is stopped first, so that it stays in this epoch however quick it is and however long its
        checkpoints take to become durable.

        Raises:
            DemoError: They do not become so.
        """
        if attempt.opened is None:
            raise DemoError("an epoch began before the gate was open")
        pid = attempt.opened.pid
        os.kill(pid, signal.SIGSTOP)
        stopped = time.monotonic()
        try:
            durable = self.ledger.wait(attempt.opened.lineage, self.durable, PATIENCE)
        finally:
            os.kill(pid, signal.SIGKILL)
        attempt.killed_at = time.time()
        attempt.killed = Killed(pid, int(attempt.epochs[-1].name), durable, time.monotonic() - stopped)
        return attempt.killed


def follow(
    attempt: Attempt, flow: Flow, kill: Kill | None, show: Callable[[FlowEvent | Killed], None]
) -> None:
    """Follow a flow until it has ended; kill its training on the way if asked to.

    Raises:
        DemoError: See `Kill.strike`.
    """
    for at, event in flow.events():
        attempt.record(at, event)
        show(event)
        if kill is not None and isinstance(event, Began) and event.epoch == kill.epoch:
            show(kill.strike(attempt))
    attempt.ended = time.time()

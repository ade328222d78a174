"""One run of the flow as it is heard, and the hand that kills its training."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from demo.failure import DemoError
from demo.flow import Flow, Heard, StepBegan, StepEnded
from demo.ledger import Ledger
from podferry.pipelines.digits_events import Began, Left, Opened, Saved, Trained

NOTEWORTHY = 0.2
"""Seconds for which training was stopped before it was killed: less goes without saying."""
PATIENCE = 60.0
"""Seconds that checkpoints may take to become durable; polling takes five where inotify takes one."""


@dataclass(slots=True)
class Span:
    """Something that took a while. Seconds since the epoch; `ended` is None while it goes on."""

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
    """What is known of a run of the flow.

    Attributes:
        number: 1, 2.
        began, ended: Seconds since the epoch.
        steps: KFP's, in their order.
        epochs: Those that began; the last has no end where training was killed.
        opened: When and with what training started.
        saved: Checkpoints in the order of writing.
        left: The end of training.
        killed: How it was killed, None where it was not.
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

    def hear(self, at: float, told: Heard) -> None:
        """Take down what the flow tells."""
        match told:
            case StepBegan(name):
                self.steps.append(Span(name, at))
            case StepEnded(name, succeeded):
                step = next(step for step in reversed(self.steps) if step.name == name)
                step.ended, step.succeeded = at, succeeded
            case Opened():
                self.opened = told
            case Began():
                self.epochs.append(Span(str(told.epoch), told.at))
            case Trained():
                self.epochs[-1].ended = told.at
            case Saved():
                self.saved.append(told)
            case Left():
                self.left = told

    def step(self, name: str) -> Span | None:
        """The step of that name, None where it was not reached."""
        return next((step for step in self.steps if step.name == name), None)

    @property
    def blocked(self) -> float:
        """Seconds that training stood still for checkpoints: writing them, and waiting at its end."""
        return sum(saved.blocked for saved in self.saved) + (self.left.blocked if self.left else 0.0)


@dataclass(frozen=True, slots=True)
class Kill:
    """When to kill.

    Attributes:
        epoch: In this one.
        durable: Not before that many checkpoints are durable.
        ledger: Tells how many are.
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


def follow(attempt: Attempt, flow: Flow, kill: Kill | None, show: Callable[[Heard | Killed], None]) -> None:
    """Listen to a flow until it has ended; kill its training on the way where that is asked for.

    Raises:
        DemoError: See `Kill.strike`.
    """
    for at, told in flow.heard():
        attempt.hear(at, told)
        show(told)
        if kill is not None and isinstance(told, Began) and told.epoch == kill.epoch:
            show(kill.strike(attempt))
    attempt.ended = time.time()

"""What the agent's API offers, independent of HTTP (`podferry.sidecar.control.http_server`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from podferry.contract.http_api import Durability, Marked
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations


@dataclass(frozen=True, slots=True)
class FlushRequest:
    """What the caller of a flush knows.

    Attributes:
        final: Nothing writes any more.
        ending: The pod is ending: the newest checkpoint goes first.
        exit_code: Of the trainer, if known.
        interrupted: It proves no success: a signal has ended the trainer, or a process of it still runs.
    """

    final: bool = False
    ending: bool = False
    exit_code: int | None = None
    interrupted: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the trainer has written all that it meant to write."""
        return self.exit_code == 0 and not self.interrupted


Flush = Callable[[float, FlushRequest], Awaitable[Durability]]
"""Waits for durability, at most some seconds."""
Mark = Callable[[str], Awaitable[Marked]]
"""Marks a checkpoint, by its name or step, as complete."""


@dataclass(slots=True)
class AgentApi:
    """State and callbacks of the API.

    Attributes:
        state: The gate and the status.
        durations: Histograms that the status does not have.
        refresh: Called before each response; updates values that change without an event, such as free space.
        flush, mark: Set once there is something to flush and to mark.
    """

    state: AgentState
    durations: Durations
    refresh: Callable[[], object] = lambda: None
    flush: Flush | None = None
    mark: Mark | None = None


def merge(answers: Sequence[Durability]) -> Durability:
    """One answer from those of several jobs."""
    pending = [answer for answer in answers if not answer.durable]
    return Durability(
        durable=not pending,
        pending=tuple(name for answer in pending for name in answer.pending),
        problems=tuple(problem for answer in pending for problem in answer.problems),
        hopeless=bool(pending) and all(answer.hopeless for answer in pending),
        last=next((answer.last for answer in answers if answer.last is not None), None),
    )

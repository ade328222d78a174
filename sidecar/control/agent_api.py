"""What the agent can be asked, whoever serves it (`podferry.sidecar.control.http_server`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from podferry.contract.api import Durability, Marked
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations


@dataclass(frozen=True, slots=True)
class FlushRequest:
    """What is known where durability is asked for.

    Attributes:
        final: Nobody writes any more.
        ending: The pod ends: the newest goes first.
        exit_code: What the trainer ended with, where it is known.
    """

    final: bool = False
    ending: bool = False
    exit_code: int | None = None


class Flush(Protocol):
    """Waits for durability, see `podferry.sidecar.agent.agent.Agent`."""

    def __call__(self, seconds: float, wish: FlushRequest) -> Awaitable[Durability]:
        """At most `seconds`."""


Mark = Callable[[str], Awaitable[Marked]]
"""Takes a checkpoint's name or step, see
`podferry.sidecar.checkpoint.pipeline.pipeline.CheckpointPipeline.mark`."""


class AgentApi:
    """Where the answers are.

    Attributes:
        state: The gate and the status.
        timings: What the status does not tell.
        refresh: Brings the status up to date before it is told: what changes by itself, as a volume's
            fullness.
        flush, mark: Set once there is something to wait for and to mark.
    """

    def __init__(self, state: AgentState, timings: Durations) -> None:
        self.state, self.timings = state, timings
        self.refresh: Callable[[], object] = lambda: None
        self.flush: Flush | None = None
        self.mark: Mark | None = None


def merge(answers: Sequence[Durability]) -> Durability:
    """The answers of several parts of an agent as one."""
    open_ones = [answer for answer in answers if not answer.durable]
    return Durability(
        durable=not open_ones,
        pending=tuple(name for answer in open_ones for name in answer.pending),
        problems=tuple(problem for answer in open_ones for problem in answer.problems),
        hopeless=bool(open_ones) and all(answer.hopeless for answer in open_ones),
        last=next((answer.last for answer in answers if answer.last is not None), None),
    )

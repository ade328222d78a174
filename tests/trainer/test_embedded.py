"""The wait at the end of `ferry`, with an agent of its own."""

from __future__ import annotations

from typing import Any, cast

import pytest

from podferry.contract.http_api import Durability
from podferry.sidecar.launch.local_agent import LocalAgent
from podferry.trainer.embedded import wait_durable


class Agent:
    """Is never durable; notes how long it was asked to wait, and whether the pod is said to end."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.client, self.detached, self._error = self, False, error
        self.asked: list[tuple[float, bool]] = []

    def wait_durable(self, seconds: float, *, ending: bool, **_: Any) -> Durability:
        self.asked.append((seconds, ending))
        if self._error is not None:
            raise self._error
        return Durability(durable=False, pending=("epoch-2",))

    def detach(self) -> None:
        self.detached = True


def test_after_a_short_wait_the_agent_continues_alone() -> None:
    agent = Agent()
    assert not wait_durable(cast(LocalAgent, agent), 0.5, 0).durable
    assert agent.detached
    assert sum(seconds for seconds, _ in agent.asked) < 10


def test_after_a_long_wait_the_newest_checkpoint_has_a_grace_period() -> None:
    agent = Agent()
    wait_durable(cast(LocalAgent, agent), 40.0, 0)
    assert (agent.asked[-1], agent.detached) == ((30.0, True), False)


def test_ctrl_c_ends_the_wait_and_the_agent_continues_alone() -> None:
    agent = Agent(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        wait_durable(cast(LocalAgent, agent), 600.0, 0)
    assert agent.detached

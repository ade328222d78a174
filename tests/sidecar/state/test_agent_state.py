from __future__ import annotations

from podferry.contract.errors import InvalidSpec
from podferry.contract.status import Status
from podferry.sidecar.state.agent_state import AgentState


async def test_wait_for_returns_at_its_deadline() -> None:
    state = AgentState(Status())
    assert not await state.wait_for(lambda: False, 0.01)
    assert not state._waiters


def test_an_invalid_spec_is_not_retryable() -> None:
    state = AgentState(Status())
    state.fail(InvalidSpec.of("x"))
    assert not state.gate().retryable

from __future__ import annotations

import asyncio

from podferry.contract.http_api import Durability
from podferry.sidecar.control import prestop_command
from podferry.sidecar.control.agent_api import AgentApi, FlushRequest
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.state.agent_state import AgentState


async def test_the_hook_reports_that_the_pod_ends_and_does_not_wait(
    served: tuple[AgentApi, AgentState, AgentClient],
) -> None:
    api, _, client = served
    calls: list[tuple[float, FlushRequest]] = []

    async def flush(seconds: float, request: FlushRequest) -> Durability:
        calls.append((seconds, request))
        return Durability(durable=False, pending=("x",))

    api.flush = flush
    assert await asyncio.to_thread(prestop_command.main, ["--agent", client.url]) == 0
    assert calls == [(0, FlushRequest(ending=True))]

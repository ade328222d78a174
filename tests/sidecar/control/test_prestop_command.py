from __future__ import annotations

import asyncio

import pytest

from podferry.contract.http_api import Durability
from podferry.sidecar.control import http_client, prestop_command
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


def test_an_agent_that_does_not_answer_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http_client, "RESTART_SECONDS", 0.0)
    assert prestop_command.main(["--agent", "http://127.0.0.1:1"]) == 1
    assert "does not answer" in capsys.readouterr().err

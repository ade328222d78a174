from __future__ import annotations

import asyncio

import pytest

from podferry.contract.errors import Problem
from podferry.contract.http_api import Marked
from podferry.sidecar.control import done_command, http_client
from podferry.sidecar.control.agent_api import AgentApi
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.state.agent_state import AgentState

Served = tuple[AgentApi, AgentState, AgentClient]


async def run(client: AgentClient, step: str) -> int:
    return await asyncio.to_thread(done_command.main, ["done", step, "--agent", client.url])


async def test_a_mark_succeeds_silently(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    api, _, client = served
    marked: list[str] = []

    async def mark(checkpoint: str) -> Marked:
        marked.append(checkpoint)
        return Marked(checkpoint)

    api.mark = mark
    assert await run(client, "step 1/2") == 0
    assert marked == ["step 1/2"]
    assert capsys.readouterr().err == ""


async def test_all_problems_of_a_mark_are_printed(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    api, _, client = served

    async def mark(checkpoint: str) -> Marked:
        return Marked(None, (Problem("a is not complete", "1 of 2"), Problem("b")))

    api.mark = mark
    assert await run(client, "5") == 1
    assert capsys.readouterr().err.splitlines() == ["podferry: a is not complete (1 of 2).", "podferry: b."]


def test_an_agent_that_does_not_answer_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http_client, "RESTART_SECONDS", 0.0)
    assert done_command.main(["done", "5", "--agent", "http://127.0.0.1:1"]) == 1
    assert "does not answer" in capsys.readouterr().err


def test_without_an_agent_the_command_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PODFERRY_AGENT", raising=False)
    with pytest.raises(SystemExit) as caught:
        done_command.main(["done", "5"])
    assert caught.value.code == 2
    assert "PODFERRY_AGENT" in capsys.readouterr().err

from __future__ import annotations

import asyncio
import socket
import threading
import time

import msgspec
import pytest

from podferry.contract.errors import Unavailable
from podferry.contract.http_api import Durability
from podferry.contract.status import Status
from podferry.sidecar.control import http_client
from podferry.sidecar.control.agent_api import AgentApi, FlushRequest
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.state.agent_state import AgentState


async def test_wait_durable_polls_until_the_deadline(
    served: tuple[AgentApi, AgentState, AgentClient],
) -> None:
    api, _, client = served
    calls: list[tuple[float, FlushRequest]] = []

    async def flush(seconds: float, request: FlushRequest) -> Durability:
        calls.append((seconds, request))
        return Durability(durable=len(calls) == 3, pending=("x",))

    api.flush = flush
    asked = {"final": True, "ending": True, "exit_code": 3, "interrupted": True}
    answer = await asyncio.to_thread(client.wait_durable, 60, **asked)
    assert answer.durable
    assert len(calls) == 3
    assert all(0 < seconds <= 25 for seconds, _ in calls)
    assert {request for _, request in calls} == {FlushRequest(**asked)}


async def test_the_rest_of_a_wait_is_no_request(
    served: tuple[AgentApi, AgentState, AgentClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer would replace a better one: without time for a scan nothing is known."""
    api, _, client = served
    monkeypatch.setattr(http_client, "SHORTEST_SECONDS", 60.0)
    calls: list[float] = []

    async def flush(seconds: float, request: FlushRequest) -> Durability:
        calls.append(seconds)
        return Durability(durable=False, pending=("x",))

    api.flush = flush
    answer = await asyncio.to_thread(client.wait_durable, 50)
    assert (answer.pending, len(calls)) == (("x",), 1)


async def test_wait_durable_gives_up_if_hopeless(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    api, _, client = served

    async def flush(seconds: float, request: FlushRequest) -> Durability:
        return Durability(durable=False, pending=("x",), hopeless=True)

    api.flush = flush
    assert (await asyncio.to_thread(client.wait_durable, 60)).hopeless


def test_an_unreachable_agent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "RESTART_SECONDS", 0.0)
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:1 does not answer"):
        AgentClient("http://127.0.0.1:1").status()


def test_a_worker_that_is_killed_late_in_a_wait_may_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for a restart counts from the failure, not from the request."""
    monkeypatch.setattr(http_client, "RESTART_SECONDS", 2.0)
    body = msgspec.json.encode(Status())
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            first, _ = listener.accept()
            with first:
                first.recv(4096)
                time.sleep(2.5)  # longer than the time for a restart
            second, _ = listener.accept()
            with second:
                second.recv(4096)
                second.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        worker = threading.Thread(target=serve)
        worker.start()
        assert AgentClient(f"http://127.0.0.1:{listener.getsockname()[1]}").status() == Status()
        worker.join()

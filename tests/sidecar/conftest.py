"""Fixtures of several packages: the checkpoint rig in both modes of watching, and a served agent."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import stamina

from podferry.contract.status import Status
from podferry.sidecar.control.agent_api import AgentApi
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.control.http_server import serve
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations
from tests.support.checkpoint_rig import Rig
from tests.support.manual_clock import Clock


@pytest.fixture
def quick_retries() -> Iterator[None]:
    """Three attempts at everything, without a pause between them."""
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """As many attempts as the code makes, up to a hundred, without a pause between them."""
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@pytest.fixture
def rig(tmp_path: Path, quick_retries: None) -> Rig:
    """A rig on inotify."""
    return Rig(tmp_path, polling=False)


@pytest.fixture(params=["inotify", "polling"])
def any_rig(request: pytest.FixtureRequest, tmp_path: Path, quick_retries: None) -> Rig:
    """A rig in each of the two modes of watching."""
    return Rig(tmp_path, polling=request.param == "polling")


@pytest.fixture
async def served() -> AsyncIterator[tuple[AgentApi, AgentState, AgentClient]]:
    """The API of an agent, its state, and a client of it."""
    state = AgentState(Status())
    api = AgentApi(state, Durations())
    listener = socket.create_server(("127.0.0.1", 0))
    runner = await serve(api, listener)
    yield api, state, AgentClient(f"http://127.0.0.1:{listener.getsockname()[1]}")
    await runner.cleanup()


@pytest.fixture
def clock() -> Clock:
    """A clock that only a test moves."""
    return Clock()

"""An agent as a child process: it is watched, and started again if it is killed."""

import errno
import os
import signal
import socket
import time

import pytest

from podferry.sidecar.launch import local_agent as module
from podferry.sidecar.launch.local_agent import launch
from tests.support.patience import PATIENCE


@pytest.fixture
def agent(tmp_path):
    launched = launch({"checkpoints": str(tmp_path / "destination"), "lineage": "t"}, ["train"])
    yield launched
    launched.stop()


def other_process(agent, pid):
    deadline = time.monotonic() + PATIENCE
    while agent.process.pid == pid:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_agent_is_replaced_at_the_same_address(agent, capfd):
    assert agent.client.wait_for_gate().open
    (agent.run.data / "checkpoints" / "epoch-1.bin").write_bytes(b"one")
    pid = agent.process.pid
    os.kill(pid, signal.SIGKILL)
    other_process(agent, pid)
    durability = agent.client.wait_durable(30, final=True, exit_code=0)
    assert (durability.durable, durability.last.name) == (True, "epoch-1")
    assert "the agent was killed by SIGKILL; starting another one" in capfd.readouterr().err


def refused(address):
    with socket.socket() as client:
        return client.connect_ex(address) == errno.ECONNREFUSED


@pytest.fixture
def no_restarts(monkeypatch):
    monkeypatch.setattr(module, "RESTART_PAUSES", ())


@pytest.mark.usefixtures("no_restarts")
def test_an_agent_that_is_given_up_answers_nobody(agent, capfd):
    assert agent.client.wait_for_gate().open
    os.kill(agent.process.pid, signal.SIGKILL)
    agent._watch.join(PATIENCE)
    assert "it is given up" in capfd.readouterr().err
    address = ("127.0.0.1", int(agent.url.rpartition(":")[2]))
    deadline = time.monotonic() + PATIENCE
    while not refused(address):  # its worker gives way first
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_end_removes_its_directories(tmp_path):
    launched = launch({"checkpoints": str(tmp_path / "destination"), "lineage": "t"}, ["train"])
    assert launched.client.wait_for_gate().open
    launched.stop()
    assert not launched.run.data.exists()
    assert not launched.run.directory.path.exists()
    assert launched.process.poll() == 0


@pytest.mark.usefixtures("no_restarts")
def test_without_anything_of_value_nothing_is_left(tmp_path):
    """The agent is killed during the prefetch, which a silent server makes endless."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        agent = launch({"dataset": f"http://127.0.0.1:{silent.getsockname()[1]}/d/"}, ["train"])
        silent.accept()[0].close()
        os.kill(agent.process.pid, signal.SIGKILL)
        agent.stop()
    assert agent.left() is None
    assert not agent.run.data.exists()
    assert not agent.run.directory.path.exists()

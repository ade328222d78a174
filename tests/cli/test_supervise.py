import socket

import pytest

from podferry.cli import supervise as module
from podferry.cli.supervise import DEFAULT_PORT, main


@pytest.fixture
def supervised(monkeypatch):
    """How the supervisor was called: its worker's arguments, address and option."""
    calls = []

    def record(arguments, listener, *, until_stdin_closes):
        calls.append((arguments, listener.getsockname(), until_stdin_closes))
        return 7

    monkeypatch.setattr(module, "supervise", record)
    return calls


def test_options_of_the_worker_are_passed_on(supervised):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    options = ["--port", str(address[1]), "--until-stdin-closes", "--polling", "--por", "x", "--unknown=1"]
    assert main(options) == 7
    assert supervised == [(["--polling", "--por", "x", "--unknown=1"], address, True)]


def test_a_socket_may_be_inherited(supervised):
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    assert main(["--listen-fd", str(listener.detach())]) == 7
    assert supervised == [([], address, False)]


def test_the_default_port_is_on_loopback(supervised, monkeypatch):
    asked = []
    create = socket.create_server
    monkeypatch.setattr(socket, "create_server", lambda at: asked.append(at) or create(("127.0.0.1", 0)))
    assert main([]) == 7
    assert asked == [("127.0.0.1", DEFAULT_PORT)]

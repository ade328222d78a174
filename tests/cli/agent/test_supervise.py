import socket
from pathlib import Path

import pytest

from podferry.cli.agent import supervise as module
from podferry.cli.agent.supervise import DEFAULT_PORT, main
from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.runtime.messages import configure_messages, print_message


@pytest.fixture
def supervised(monkeypatch):
    """How the supervisor was called: its worker's arguments, address and option."""
    calls = []

    def record(arguments, listener, run):
        calls.append((arguments, listener.getsockname(), run))
        return 7

    monkeypatch.setattr(module, "supervise", record)
    return calls


def test_options_of_the_worker_are_passed_on(supervised):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    options = ["--port", str(address[1]), "--polling", "--por", "x", "--unknown=1"]
    assert main(options) == 7
    assert supervised == [(["--polling", "--por", "x", "--unknown=1"], address, None)]


def test_the_run_is_for_both(supervised):
    listener = socket.create_server(("127.0.0.1", 0))
    assert main(["--listen-fd", str(listener.detach()), "--run-dir", "/run"]) == 7
    assert supervised[0][0] == ["--run-dir", "/run"]
    assert supervised[0][2] == RunDirectory(Path("/run"))


def test_a_socket_may_be_inherited(supervised):
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    assert main(["--listen-fd", str(listener.detach())]) == 7
    assert supervised == [([], address, None)]


def test_the_default_port_is_on_loopback(supervised, monkeypatch):
    asked = []
    create = socket.create_server
    monkeypatch.setattr(socket, "create_server", lambda at: asked.append(at) or create(("127.0.0.1", 0)))
    assert main([]) == 7
    assert asked == [("127.0.0.1", DEFAULT_PORT)]


def test_an_address_of_its_own_on_loopback(supervised, monkeypatch):
    monkeypatch.setattr(
        module, "supervise", lambda _, listener, run: listener.getsockname()[0] == "127.7.8.9"
    )
    assert main(["--host=127.7.8.9", "--port=0"])


@pytest.mark.parametrize("port", ["99999", "-1", "80x", ""])
def test_a_port_that_is_none_is_a_usage_error(supervised, capsys, port):
    with pytest.raises(SystemExit) as end:
        main([f"--port={port}"])
    assert end.value.code == 2
    assert f"not a port from 0 to 65535: {port!r}" in capsys.readouterr().err
    assert supervised == []


def test_a_port_that_is_taken_is_named(podferry):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = podferry("agent", "--port", port)
    assert said.code == 1
    assert said.err.startswith(f"podferry: the agent cannot listen on port {port} (Address already in use")


@pytest.mark.parametrize(
    ("options", "as_json"),
    [((), False), (("--log-format", "json"), True), (("--in-pod",), True), (("--log-format", "text"), False)],
)
def test_its_own_messages_have_the_format_of_the_log(supervised, monkeypatch, capsys, options, as_json):
    monkeypatch.setattr(module, "supervise", lambda *_: print_message("podferry: restarting") or 0)
    assert main(["--port", "0", *options]) == 0
    configure_messages("text", quiet=False)
    assert capsys.readouterr().err.startswith('{"event": "restarting"' if as_json else "podferry: restarting")


def test_the_format_is_for_the_worker_too(supervised):
    main(["--port", "0", "--log-format", "json"])
    configure_messages("text", quiet=False)
    assert supervised[0][0] == ["--log-format", "json"]

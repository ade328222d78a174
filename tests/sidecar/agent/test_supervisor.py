"""The supervisor, with small real programs as workers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SUPERVISE = """
import socket, sys
from podferry.sidecar.agent.supervisor import Supervisor
with socket.create_server(("127.0.0.1", 0)) as listener:
    command = [sys.executable, "-c", sys.argv[1], *sys.argv[2:]]
    sys.exit(Supervisor(command, listener, until_stdin_closes=True).run())
"""
LIVE = """
import os, pathlib, signal, sys, time
log = pathlib.Path(sys.argv[1])
def end(*_):
    log.open("a").write("drained\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
log.open("a").write(f"{os.getpid()}\\n")
while True:
    signal.pause()
"""

RECORD_START = """
import os, pathlib, signal, sys
pathlib.Path(sys.argv[1]).write_text(os.environ["MALLOC_MMAP_THRESHOLD_"] + "\\n")
if "--ending" not in sys.argv:
    signal.pause()
"""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a supervisor of a worker's code with its arguments; terminated at the end of the test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(worker: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", SUPERVISE, worker, *arguments]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL))
        return started[-1]

    yield begin
    for supervisor in started:
        with supervisor:
            supervisor.terminate()


def lines(log: Path, count: int) -> list[str]:
    """The log's lines once it has `count` of them."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = log.read_text().splitlines() if log.exists() else []
        if len(found) >= count:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{log} has fewer than {count} lines after 20 s")


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "stdin"])
def test_a_request_to_end_drains_the_worker_and_exits_0(start: Start, tmp_path: Path, how: str) -> None:
    log = tmp_path / "log"
    supervisor = start(LIVE, str(log))
    lines(log, 1)
    assert supervisor.stdin is not None
    if how == "stdin":
        supervisor.stdin.close()
    else:
        supervisor.send_signal(signal.Signals[how])
    assert supervisor.wait(20) == 0
    assert lines(log, 2)[1] == "drained"


def test_a_killed_worker_is_restarted(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    supervisor = start(LIVE, str(log))
    for starts in (1, 2):
        os.kill(int(lines(log, starts)[-1]), signal.SIGKILL)
    pids = lines(log, 3)
    assert len(set(pids)) == 3
    supervisor.terminate()
    assert supervisor.wait(20) == 0


def test_a_killed_parent_lets_the_worker_drain(tmp_path: Path) -> None:
    """A parent that is killed closes the pipe: the agent of a killed trainer drains and ends."""
    log = tmp_path / "log"
    command = [sys.executable, "-c", SUPERVISE, LIVE, str(log)]
    code = f"import subprocess; subprocess.Popen({command!r}, stdin=subprocess.PIPE).wait()"
    trainer = subprocess.Popen([sys.executable, "-c", code])
    lines(log, 1)
    trainer.kill()
    trainer.wait()
    assert lines(log, 2)[1] == "drained"


def test_the_worker_returns_freed_buffers_to_the_kernel(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    start(RECORD_START, str(log))
    assert lines(log, 1)[0] == str(1 << 20)


def test_a_usage_error_is_final(start: Start) -> None:
    supervisor = start("import sys; sys.exit(2)")
    assert supervisor.wait(20) == 2


def test_a_request_to_end_during_the_pause_is_honoured(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    worker = f"import pathlib, sys; pathlib.Path({str(log)!r}).open('a').write('x\\n'); sys.exit(1)"
    supervisor = start(worker)
    lines(log, 3)
    supervisor.terminate()
    assert supervisor.wait(20) == 0


def test_a_worker_killed_during_the_drain_is_restarted_to_drain(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    worker = """
import os, pathlib, signal, sys
log = pathlib.Path(sys.argv[1])
log.open("a").write(" ".join(sys.argv[-1:]) + "\\n")
if sys.argv[-1] != "--ending":
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    log.open("a").write("ready\\n")
    signal.pause()
log.open("a").write("drained\\n")
"""
    supervisor = start(worker, str(log))
    lines(log, 2)
    supervisor.terminate()
    assert supervisor.wait(20) == 0
    assert log.read_text().splitlines()[-2:] == ["--ending", "drained"]


def test_the_address_outlives_the_worker(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    worker = """
import os, pathlib, socket, sys
listener = socket.socket(fileno=int(sys.argv[-1]))
with open(sys.argv[1], "a") as log:
    log.write(f"{listener.getsockname()[1]}\\n")
listener.accept()[0].close()
os.abort()
"""
    supervisor = start(worker, str(log))
    port = int(lines(log, 1)[0])
    socket.create_connection(("127.0.0.1", port)).close()
    assert lines(log, 2) == [str(port)] * 2
    supervisor.terminate()
    assert supervisor.wait(20) == 0

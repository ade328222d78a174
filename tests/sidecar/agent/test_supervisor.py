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

from podferry.sidecar.runtime.file_lock import acquire, release
from tests.support.patience import PATIENCE

SUPERVISE = """
import os, pathlib, socket, sys
from podferry.sidecar.agent.supervisor import Supervisor
from podferry.sidecar.config.run_directory import RunDirectory
run = os.environ.get("RUN")
with socket.create_server(("127.0.0.1", 0)) as listener:
    command = [sys.executable, "-c", sys.argv[1], *sys.argv[2:]]
    sys.exit(Supervisor(command, listener, RunDirectory(pathlib.Path(run)) if run else None).run())
"""
# `signal.pause` would miss a signal that comes just before it.
LIVE = """
import os, pathlib, signal, sys, time
log = pathlib.Path(sys.argv[1])
def end(*_):
    log.open("a").write("drained\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
log.open("a").write(f"{os.getpid()}\\n")
while True:
    time.sleep(0.05)
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
            supervisor.terminate() if "RUN" not in os.environ else supervisor.kill()


def lines(log: Path, count: int) -> list[str]:
    """The log's lines once it has `count` of them."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = log.read_text().splitlines() if log.exists() else []
        if len(found) >= count:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{log} has fewer than {count} lines after 20 s")


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
def test_a_request_to_end_drains_the_worker_and_exits_0(start: Start, tmp_path: Path, how: str) -> None:
    log = tmp_path / "log"
    supervisor = start(LIVE, str(log))
    lines(log, 1)
    supervisor.send_signal(signal.Signals[how])
    assert supervisor.wait(PATIENCE) == 0
    assert lines(log, 2)[1] == "drained"


COUNT_SIGNALS = """
import pathlib, signal, sys
log = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGTERM, lambda *_: log.open("a").write("asked\\n"))
log.open("a").write("ready\\n")
sys.stdin.read()  # until its supervisor has gone
"""


def test_in_a_local_run_the_worker_decides_when_it_ends(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, run = tmp_path / "log", tmp_path / "run"
    run.mkdir()
    monkeypatch.setenv("RUN", str(run))
    held = acquire(run)
    supervisor = start(COUNT_SIGNALS, str(log), str(run))
    for count in (1, 2):
        lines(log, count)
        supervisor.terminate()
    assert lines(log, 3) == ["ready", "asked", "asked"], "each signal is passed on"
    release(held)
    assert supervisor.poll() is None


def test_in_a_local_run_that_is_over_a_worker_that_always_dies_is_given_up(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUN", str(tmp_path / "gone"))
    assert start("raise SystemExit(1)").wait(PATIENCE) == 0


def test_a_killed_worker_is_restarted(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    supervisor = start(LIVE, str(log))
    for starts in (1, 2):
        os.kill(int(lines(log, starts)[-1]), signal.SIGKILL)
    pids = lines(log, 3)
    assert len(set(pids)) == 3
    supervisor.terminate()
    assert supervisor.wait(PATIENCE) == 0


def test_the_worker_returns_freed_buffers_to_the_kernel(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    start(RECORD_START, str(log))
    assert lines(log, 1)[0] == str(1 << 20)


def test_a_usage_error_is_final(start: Start) -> None:
    supervisor = start("import sys; sys.exit(2)")
    assert supervisor.wait(PATIENCE) == 2


def test_a_request_to_end_during_the_pause_is_honoured(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    worker = f"import pathlib, sys; pathlib.Path({str(log)!r}).open('a').write('x\\n'); sys.exit(1)"
    supervisor = start(worker)
    lines(log, 3)
    supervisor.terminate()
    assert supervisor.wait(PATIENCE) == 0


def test_a_worker_killed_during_the_drain_is_restarted_to_drain(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    worker = """
import os, pathlib, signal, sys, time
log = pathlib.Path(sys.argv[1])
log.open("a").write(" ".join(sys.argv[-1:]) + "\\n")
if sys.argv[-1] != "--ending":
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    log.open("a").write("ready\\n")
    while True:
        time.sleep(0.05)
log.open("a").write("drained\\n")
"""
    supervisor = start(worker, str(log))
    lines(log, 2)
    supervisor.terminate()
    assert supervisor.wait(PATIENCE) == 0
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
    assert supervisor.wait(PATIENCE) == 0

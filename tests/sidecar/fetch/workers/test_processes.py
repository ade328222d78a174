"""Worker processes that are forked."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from podferry.sidecar.fetch.workers import processes
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[4]
PROGRAM = "tests.sidecar.fetch.workers.prefork_program"
linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are spawned")


def run_program(*words):
    command = [sys.executable, "-m", PROGRAM, *map(str, words)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        start_new_session=True,
        cwd=ROOT,
    )


@linux
def test_forked_workers_fill_a_stage_and_end(tmp_path):
    done = run_program("fetch", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@linux
def test_workers_end_with_their_parent():
    done = run_program("exit")
    assert done.stderr == ""
    workers = [Path("/proc") / number for number in done.stdout.split()]
    assert len(workers) == 2
    deadline = time.monotonic() + PATIENCE
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline, "they outlive it"
        time.sleep(0.01)


def is_running(process):
    """Whether it exists and is not a zombie."""
    try:
        return b") Z " not in (process / "stat").read_bytes()
    except FileNotFoundError:
        return False


@linux
def test_an_interrupt_is_reported_by_the_parent_alone():
    done = run_program("interrupt")
    assert done.stderr.count("KeyboardInterrupt") == 1


def test_a_program_with_threads_does_not_fork(monkeypatch):
    monkeypatch.setattr(processes.threading, "active_count", lambda: 2)
    processes.prefork()
    assert processes._idle == []


def test_if_no_process_can_be_forked_there_are_no_workers(monkeypatch):
    def fork():
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(processes.os, "fork", fork)
    monkeypatch.setattr(processes.threading, "active_count", lambda: 1)
    monkeypatch.setattr(processes, "cores", lambda: 2)
    processes.prefork()
    assert processes._idle == []


@linux
def test_a_worker_that_is_fetching_ends_with_its_parent(tmp_path):
    """It is in the middle of a request that is never answered."""
    done = run_program("abandon", tmp_path)
    assert done.stderr == ""
    (worker,) = done.stdout.split()
    deadline = time.monotonic() + PATIENCE
    while is_running(Path("/proc") / worker):
        assert time.monotonic() < deadline, "it outlives it, and may still write"
        time.sleep(0.01)

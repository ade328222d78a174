"""Processes that are forked to help."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from podferry.sidecar.fetch import worker_prefork as standby

ROOT = Path(__file__).parents[3]
PROGRAM = "tests.sidecar.fetch.forking"
linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere helpers are begun anew")


def forking(*words):
    command = [sys.executable, "-m", PROGRAM, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, start_new_session=True, cwd=ROOT
    )


@linux
def test_forked_helpers_carry_a_stage_and_end(tmp_path):
    done = forking("carry", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@linux
def test_helpers_end_with_their_parent():
    done = forking("leave")
    assert done.stderr == ""
    left = [Path("/proc") / number for number in done.stdout.split()]
    assert len(left) == 2
    deadline = time.monotonic() + 20
    while any(map(lives, left)):
        assert time.monotonic() < deadline, "they outlive it"
        time.sleep(0.01)


def lives(process):
    """Whether it is there, and not only waits for somebody to hear of its end."""
    try:
        return b") Z " not in (process / "stat").read_bytes()
    except FileNotFoundError:
        return False


@linux
def test_an_interrupt_is_told_by_the_parent_alone():
    done = forking("interrupt")
    assert done.stderr.count("KeyboardInterrupt") == 1


def test_a_program_with_threads_is_not_forked(monkeypatch):
    monkeypatch.setattr(standby.threading, "active_count", lambda: 2)
    standby.prefork()
    assert standby._waiting == []


def test_where_no_process_can_be_forked_none_helps(monkeypatch):
    def fork():
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(standby.os, "fork", fork)
    monkeypatch.setattr(standby.threading, "active_count", lambda: 1)
    monkeypatch.setattr(standby, "cores", lambda: 2)
    standby.prefork()
    assert standby._waiting == []


@linux
def test_a_helper_at_work_ends_with_its_parent(tmp_path):
    """It is in the middle of a request that is never answered."""
    done = forking("abandon", tmp_path)
    assert done.stderr == ""
    (helper,) = done.stdout.split()
    deadline = time.monotonic() + 5
    while lives(Path("/proc") / helper):
        assert time.monotonic() < deadline, "it outlives it, and may still write"
        time.sleep(0.01)

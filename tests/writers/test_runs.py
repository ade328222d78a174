"""Stops and faults, with a program that needs only Python."""

from __future__ import annotations

import signal
import sys

import pytest
from runs import Fault, Place, Server

PROGRAM = """
from announce import ROOT, saved
with (ROOT / "a").open("wb", buffering=0) as file:
    file.write(b"1")
    file.write(b"2")
saved("a")
"""


@pytest.fixture
def ignored():
    """A shell lets programs in the background ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def run(tmp_path, environment):
    """Runs the program with a fault at the call of that number; exit status, calls, and the file."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    server = Server(sys.executable, program, environment, tmp_path / "server.log")

    def start(fault=None, at=0):
        place, seen = Place.below(tmp_path / f"run-{fault}"), []

        def on_stop(stop):
            seen.append(stop.ended or stop.saved or stop.call)
            return fault if fault and len(seen) == at else None

        code = server.run(place, on_stop, 20.0)
        return code, seen, (place.root / "a").read_bytes()

    yield start
    server.close()


def test_what_a_library_prints_is_no_answer(tmp_path, environment):
    (tmp_path / "noisy.py").write_text("print('hello')")
    (tmp_path / "program.py").write_text("import noisy\nfrom announce import saved\nsaved('a')")
    paths = {"PYTHONPATH": f"{environment['PYTHONPATH']}:{tmp_path}"}
    server = Server(sys.executable, tmp_path / "program.py", environment | paths, tmp_path / "server.log")
    assert server.run(Place.below(tmp_path / "run"), lambda _: None, 20.0) == 0
    server.close()


def test_every_call_stops(run):
    assert run() == (0, ["openat a", "write a", "write a", "close a", "a", "ok"], b"12")


@pytest.mark.parametrize(
    ("fault", "code", "ended"),
    [
        (Fault.ENOSPC, 1, ["close a", "OSError"]),
        (Fault.INTERRUPT, -2, ["close a", "KeyboardInterrupt"]),
        (Fault.KILL, -9, []),
    ],
)
def test_a_call_fails(run, fault, code, ended):
    assert run(fault, at=3) == (code, ["openat a", "write a", "write a", *ended], b"1")


def test_an_interrupt_arrives_where_it_was_ignored(ignored, run):
    assert run(Fault.INTERRUPT, at=3)[0] == -2

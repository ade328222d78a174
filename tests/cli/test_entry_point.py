"""Ctrl-C at the earliest moment."""

import gc
import signal
import subprocess
import sys

import pytest

from podferry.cli import entry_point, main
from podferry.contract.exit_codes import EXIT_INTERRUPTED

INTERRUPT = """
import builtins, os, signal, sys
signal.signal(signal.SIGINT, {handler})
original = builtins.__import__
def interrupting(name, *rest):
    if name == "podferry.contract.exit_codes":
        os.kill(os.getpid(), signal.SIGINT)
    return original(name, *rest)
sys.argv = ["podferry", "--version"]
from podferry.cli.entry_point import program
builtins.__import__ = interrupting
program()
"""


@pytest.mark.parametrize(
    ("handler", "code", "said"),
    [("signal.default_int_handler", EXIT_INTERRUPTED, ""), ("signal.SIG_IGN", 0, "podferry, version")],
)
def test_ctrl_c_while_the_command_loads_is_quiet(handler, code, said):
    words = [sys.executable, "-c", INTERRUPT.format(handler=handler)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(said)
    assert bool(done.stdout) is bool(said)


def test_a_process_has_the_usual_handler_once_it_has_loaded(monkeypatch):
    handlers = []
    monkeypatch.setattr(main, "program", lambda: handlers.append(signal.getsignal(signal.SIGINT)))
    monkeypatch.setattr(gc, "disable", lambda: None)  # of this process
    before = signal.getsignal(signal.SIGINT)
    entry_point.program()
    assert handlers == [before]


LOADED = """
import sys, types
import podferry.cli
main = podferry.cli.main = sys.modules["podferry.cli.main"] = types.ModuleType("podferry.cli.main")
names = {"msgspec", "platform", "typing_extensions", "uuid"}
main.program = lambda: print(*sorted(names & sys.modules.keys()))
main.is_supervisor = lambda words: False
from podferry.cli.entry_point import program
program()
import typing_extensions, platform
assert platform.python_version()
"""


def test_msgspec_loads_without_what_it_hardly_needs():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "msgspec uuid\n"

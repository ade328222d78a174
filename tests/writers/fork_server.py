"""Imports what a program imports, once, then forks a child for each of its runs. Standard library only.

Reads lines `root TAB done TAB log` and answers each with two lines: the child's process id, and its exit
status, negative for a signal. The child makes a directory `end@ok` or `end@ERROR` in `done` when the program
has ended and the exception, with all that it held open, is gone; then it ends. What the first child had to
import is imported before the next one is forked.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import datetime
import gc
import importlib
import operator
import os
import random
import runpy
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TextIO

SEEDS = {
    "numpy": "random.seed",
    "torch": "manual_seed",
    "paddle": "seed",
    "tensorflow": "random.set_seed",
    "keras": "utils.set_random_seed",
}


def imports(program: Path) -> None:
    """Import what the program imports at its top level."""
    for statement in ast.parse(program.read_text()).body:
        named = isinstance(statement, ast.Import | ast.ImportFrom)
        if named and getattr(statement, "module", "") != "announce":
            exec(compile(ast.Module([statement], []), str(program), "exec"), {})  # noqa: S102 - our own programs


def run(program: Path, root: str, done: str, log: str) -> None:
    """Run the program in this process, to its end."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in the background of a shell
    known = set(sys.modules)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    sys.argv = [str(program), root, done]
    repeat_exactly()
    interrupted, failed = False, ""
    try:
        runpy.run_path(str(program), run_name="__main__")
    except BaseException as error:  # noqa: BLE001 - whatever ends the program
        traceback.print_exc()
        interrupted, failed = isinstance(error, KeyboardInterrupt), type(error).__name__
    Path(log).with_suffix(".imports").write_text("\n".join(sorted(sys.modules.keys() - known)))
    (Path(done) / f"end@{failed or 'ok'}").mkdir()
    end(interrupted=interrupted, code=1 if failed else 0)


class FixedDate(datetime.datetime):
    """Always the same day and time."""

    @classmethod
    def now(cls, tz=None):
        """See `datetime.now`."""
        return cls(2027, 1, 15, 8, tzinfo=tz)


def repeat_exactly() -> None:
    """Same numbers and nearly the same time in each run, so that each writes the same bytes."""
    random.seed(0)
    began, clock = 1_800_000_000.0, time.monotonic
    start = clock()
    time.time = lambda: began + (clock() - start) / 1000
    datetime.datetime = FixedDate
    for name, seed in SEEDS.items():
        if name in sys.modules:
            operator.attrgetter(seed)(sys.modules[name])(0)


def end(*, interrupted: bool, code: int) -> None:
    """End as Python does, except for freeing the libraries' modules, which takes a second."""
    threading._shutdown()
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


def import_all(names: list[str]) -> None:
    """Import modules, as far as that works here."""
    for name in set(names) - {"announce"}:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def private_output() -> TextIO:
    """The standard output, for answers alone: libraries that print do so to the log."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def serve(program: Path, answers: TextIO) -> None:
    """Fork a child for each line; the child leaves the loop."""
    first = True
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if not pid:
            with Path(os.devnull).open() as nothing:
                os.dup2(nothing.fileno(), 0)
            answers.close()
            run(program, *line.rstrip("\n").split("\t"))
        print(pid, file=answers, flush=True)
        _, status = os.waitpid(pid, 0)
        if first and (found := Path(line.split("\t")[2].rstrip("\n")).with_suffix(".imports")).exists():
            import_all(found.read_text().split())
        first = False
        gc.freeze()
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


if __name__ == "__main__":
    ANSWERS = private_output()
    imports(Path(sys.argv[1]))
    print("ready", file=ANSWERS, flush=True)
    serve(Path(sys.argv[1]), ANSWERS)

"""Checks whether a command can be started, before anything is fetched for it, and starts it."""

from __future__ import annotations

import ctypes
import errno
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from podferry.contract.errors import Problem
from podferry.contract.exit_codes import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND

INTERPRETERS = {".py": "python", ".sh": "sh"}
MAX_FIRST_LINE = 4096
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
"""Loaded here: after a fork only what is loaded already is safe, as another thread watches the agent."""
PR_SET_PDEATHSIG = 1
"""Source: prctl(2)."""


def start_problem(word: str) -> tuple[int, Problem] | None:
    """Why a command cannot be started, with its exit code; None if nothing is known against it."""
    found = shutil.which(word)
    if found is not None:
        return _interpreter_problem(word, Path(found))
    path = Path(word)
    if os.sep not in word:
        remedy = _how_to_run(word) if path.is_file() else "Check its spelling, and PATH"
        return EXIT_NOT_FOUND, _problem(word, "there is no such program in PATH", remedy)
    if path.is_dir():
        return EXIT_NOT_EXECUTABLE, _problem(word, "it is a directory", "Name a program in it")
    if not path.exists():
        return EXIT_NOT_FOUND, _problem(word, "there is no such file", "Check the path")
    return EXIT_NOT_EXECUTABLE, _problem(word, "it is not executable", _how_to_run(word))


def exec_problem(word: str, error: OSError) -> tuple[int, Problem]:
    """What the kernel's refusal to start a command means."""
    code = EXIT_NOT_FOUND if error.errno == errno.ENOENT else EXIT_NOT_EXECUTABLE
    remedy = "Begin a script with a line such as #!/bin/sh" if error.errno == errno.ENOEXEC else ""
    return code, _problem(word, error.strerror or str(error), remedy)


def _problem(word: str, measured: str, remedy: str) -> Problem:
    return Problem(f"{shlex.quote(word)} cannot be started", measured, remedy)


def _how_to_run(word: str) -> str:
    interpreter = INTERPRETERS.get(Path(word).suffix)
    by_itself = f"Run `chmod +x {shlex.quote(word)}`" if os.sep in word else f"Write -- ./{shlex.quote(word)}"
    return f"{by_itself}, or -- {interpreter} {shlex.quote(word)}" if interpreter else by_itself


def _interpreter_problem(word: str, path: Path) -> tuple[int, Problem] | None:
    """A script may name an interpreter that does not exist; the kernel then reports the script as missing."""
    try:
        with path.open("rb") as file:
            first = file.readline(MAX_FIRST_LINE)
    except OSError:
        return None
    words = first.removeprefix(b"#!").removesuffix(b"\n").split(b" ") if first.startswith(b"#!") else []
    interpreter = next((os.fsdecode(one) for one in words if one), None)
    if interpreter is None or Path(interpreter).exists():
        return None
    remedy = "Correct the first line of the script"
    if interpreter.endswith("\r"):
        remedy = "Save it with the line ends of Unix: dos2unix, or sed -i 's/\\r$//'"
    return EXIT_NOT_EXECUTABLE, _problem(word, f"its interpreter {interpreter!r} does not exist", remedy)


def start(
    command: Sequence[str], environment: Mapping[str, str], lock: int, in_child: Callable[[], None]
) -> subprocess.Popen[bytes]:
    """Start a command that gets SIGTERM when this process is killed: no one would keep its data.

    On other systems than Linux it continues.

    Args:
        command: Its words.
        environment: Its variables.
        lock: A descriptor that it inherits.
        in_child: Called in the child before it executes the command.

    Raises:
        OSError: The kernel refuses; see `exec_problem`.
    """

    def prepare() -> None:
        if _prctl is not None:
            _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        in_child()

    return subprocess.Popen(command, env=environment, pass_fds=[lock], preexec_fn=prepare)  # noqa: PLW1509

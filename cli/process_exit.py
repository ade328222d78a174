"""Ends the process, the same way for every verb.

Python's own end is not used: it stops threads that it does not know, such as those of obstore's runtime, the
next time they take the interpreter's lock, and a Rust thread that is stopped so aborts the process (SIGABRT;
"PyEval_RestoreThread", Python/C API reference; https://github.com/PyO3/pyo3-async-runtimes/issues/40). It
also frees every object piece by piece, up to 40 ms that a pod would wait for.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn, TextIO


def exit_process(code: int) -> NoReturn:
    """Run the handlers of `atexit`, write what is buffered, and end at once with this exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # A second Ctrl-C must not print a traceback; the shell reports 130 for it as well.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        atexit._run_exitfuncs()  # noqa: SLF001 - the only way to run them before `os._exit`
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
    finally:
        os._exit(code)


def null_stream() -> TextIO:
    """A stream that discards what is written to it."""
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def discard_output() -> None:
    """Discard what is still buffered for a closed pipe. Source: "Note on SIGPIPE", Python's `signal`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""Lets obstore's threads finish before Python ends, in programs that end as Python does.

A thread that takes the interpreter's lock while Python finalizes is stopped, and Rust aborts the process for
it (SIGABRT; https://github.com/PyO3/pyo3-async-runtimes/issues/40). `podferry` itself does not finalize.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

TASKS = Path("/proc/self/task")
"""The threads of this process, on Linux; elsewhere nothing is waited for."""
RUNTIME = "tokio"
"""How the names of the threads of obstore's runtime begin."""
POLL_SECONDS = 0.001
"""The lock is free meanwhile: a thread that waits for it gets it."""
MAX_SECONDS = 0.5
"""A thread that works for longer is not about to take the lock."""


def wait_for_threads(is_busy: Callable[[], bool] | None = None) -> None:
    """Return once no thread of obstore's runtime has been busy twice in a row, or after `MAX_SECONDS`."""
    is_busy = is_busy or any_busy
    deadline, idle = time.monotonic() + MAX_SECONDS, 0
    while idle < 2 and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        idle = 0 if is_busy() else idle + 1


def any_busy() -> bool:
    """Whether a thread of obstore's runtime runs: proc(5), the third field of `stat`."""
    states = map(_state, _tasks())
    return any(state.startswith(RUNTIME) and state.endswith("R") for state in states)


def _tasks() -> list[Path]:
    return list(TASKS.iterdir()) if TASKS.exists() else []


def _state(task: Path) -> str:
    """Name and state of a thread, such as `tokio-rt-worker S`; empty if it has ended."""
    try:
        name, _, fields = (task / "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return ""
    return f"{name} {fields.split()[0]}"

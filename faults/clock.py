"""A clock for the agent's worker that jumps: the real one, and what stands in a file."""

from __future__ import annotations

import datetime
import sys
import time
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from faults.loaded import load_agent


def offset(path: Path) -> float:
    """Seconds to add to the real time; 0 while the file is being replaced."""
    try:
        return float(path.read_text() or 0)
    except (OSError, ValueError):
        return 0.0


class _Jumping:
    """Stands for the class `datetime` in modules that ask it for the time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return datetime.datetime.now(tz) + timedelta(seconds=offset(self._path))

    def __getattr__(self, name: str) -> Any:
        return getattr(datetime.datetime, name)


def jump_with(file: str) -> None:
    """Let the agent's clocks in this process follow a file. Monotonic clocks do not jump.

    Signatures keep the real time, since a store rejects all requests whose time is wrong: then nothing could
    become durable. Before the agent is imported `time.time` is replaced, since defaults of arguments keep it;
    afterwards `datetime` is, in its modules alone, since others ask for its type.
    """
    path, real = Path(file), time.time
    import_module("podferry.storage.s3.sigv4")  # the signer's default clock is now the real one
    time.time = lambda: real() + offset(path)

    load_agent()

    for name, module in list(sys.modules.items()):
        if name.startswith("podferry.sidecar.") and getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = _Jumping(path)  # type: ignore[attr-defined]

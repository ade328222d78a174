"""Locks among processes, files that are never seen half-written, and words about progress."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock among processes. The kernel drops it when the holder ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another command that holds {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file atomically: readers never see a part of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text)
    part.chmod(mode)
    part.replace(path)


def say(text: str) -> None:
    """Report progress on standard error. Standard output is for results."""
    sys.stderr.write(f"cluster: {text}\n")
    sys.stderr.flush()

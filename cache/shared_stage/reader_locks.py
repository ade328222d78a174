"""The locks of a shared stage's readers: a file for each, which the reader gets as a locked descriptor.

A lock file in common would let any reader keep others out. Readers have no mount of these files, and what
they get is opened by way of the read-only mount, so that they cannot fill the volume through it either.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from pathlib import Path

from podferry.cache.shared_stage.place import SharedPlace
from podferry.sidecar.config.local_path import sibling_dir
from podferry.sidecar.runtime.file_lock import is_locked

READERS_DIR = "readers"
SEPARATOR = "-"
"""Between a lock's random name and the number of the version."""


class ReaderLocks:
    """Hands out locks, and knows whether one is still held.

    A new holder sees those that an earlier one has handed out: they end with the readers.
    """

    def __init__(self, place: SharedPlace) -> None:
        self._directory = readers_dir(place.private)
        self._view = readers_dir(sibling_dir(place.view))

    def make(self, number: int) -> int:
        """A locked descriptor for one reader; the caller closes its own copy.

        Args:
            number: Of the version that it reads.

        Raises:
            OSError: It cannot be made.
        """
        self._directory.mkdir(exist_ok=True)
        self.names()  # a long life has many readers: the files of those that have ended go
        name = f"{uuid.uuid4().hex}{SEPARATOR}{number}"
        os.close(os.open(self._directory / name, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600))
        descriptor = os.open(self._view / name, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

    def names(self) -> list[str]:
        """Of the locks that readers hold, sorted: each reader's is another one."""
        return sorted(held_locks(self._directory))

    def numbers(self) -> list[int]:
        """Of the versions that the holders of locks read."""
        return [int(name.rpartition(SEPARATOR)[2]) for name in self.names()]


def readers_dir(private: Path) -> Path:
    """The directory of the lock files."""
    return private / READERS_DIR


def held_locks(directory: Path) -> list[str]:
    """The names of the lock files in a directory that are locked; removes the others."""
    held = []
    for path in directory.iterdir() if directory.is_dir() else ():
        if is_locked(path):
            held.append(path.name)
        else:
            path.unlink(missing_ok=True)
    return held

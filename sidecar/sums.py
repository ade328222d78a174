"""Sums of files as they lie on disk: at once, or while their pieces arrive in any order."""

from __future__ import annotations

import threading
from io import FileIO
from pathlib import Path

import xxhash

from podferry.storage.checksums import Running

CHUNK = 1 << 20
"""Bytes read at a time: they stay in the processor's cache between the copy and the sum."""


def digest_of(file: FileIO) -> str:
    """XXH3-128 of what is left of an open file, as commits have it."""
    digest = xxhash.xxh3_128()
    add_file(file, digest)
    return digest.hexdigest()


def add_file(file: FileIO, running: Running) -> None:
    """Add what is left of an open file to a sum."""
    buffer = memoryview(bytearray(CHUNK))
    while count := file.readinto(buffer):
        running.update(buffer[:count])


class RunningSum:
    """The sum of one file that is written in pieces.

    The piece that is due is summed from memory; one that came before its turn is read back when it is due.
    So hardly anything is left to do once the last piece has come, and no piece is held.

    Attributes:
        at: Bytes that are summed: those before the first gap.
    """

    def __init__(self, running: Running | None = None) -> None:
        """XXH3-128, or another sum of nothing yet."""
        self._running = xxhash.xxh3_128() if running is None else running
        self.at = 0
        self._waiting: dict[int, int] = {}
        self._lock = threading.Lock()
        self._busy = False

    def written(self, path: Path, start: int, data: memoryview) -> None:
        """A piece lies in the file. Safe in threads: one of them sums, for the others as well.

        Raises:
            OSError: The file cannot be read.
        """
        with self._lock:
            if self._busy or start != self.at:
                self._waiting[start] = len(data)
                return
            self._busy = True
        self._running.update(data)
        self.at += len(data)
        while count := self._next():
            with path.open("rb", buffering=0) as file:
                self._read(file, count)

    def hexdigest(self) -> str:
        """Of the pieces so far that have no gap before them."""
        return self.digest().hex()

    def digest(self) -> bytes:
        """The same in bytes."""
        return self._running.digest()

    def _next(self) -> int:
        """The length of the piece that is due; where it has not come, whoever brings it goes on."""
        with self._lock:
            count = self._waiting.pop(self.at, 0)
            self._busy = count > 0
            return count

    def _read(self, file: FileIO, count: int) -> None:
        buffer = memoryview(bytearray(CHUNK))
        file.seek(self.at)
        self.at += count
        while count:
            got = file.readinto(buffer[: min(count, CHUNK)])
            if not got:  # somebody has shortened it: the sum will not be the commit's
                return
            self._running.update(buffer[:got])
            count -= got

"""A stream of chunks that one thread writes and another reads."""

from __future__ import annotations

import io
from collections.abc import Callable
from queue import SimpleQueue

END = memoryview(b"")
"""Follows the last chunk."""
MAX_READ_BYTES = 1 << 20
"""Limit of one read, and of the headers of one archive member: names, extended attributes, the map of a
sparse file. Libraries read these into memory, so a header that claims more is an attack on it."""


class ByteStream(io.RawIOBase):
    """Chunks in order; the reader's thread calls `on_used` with the length of each one that it has read."""

    def __init__(self, on_used: Callable[[int], object]) -> None:
        super().__init__()
        self._on_used = on_used
        self._queue: SimpleQueue[memoryview | BaseException] = SimpleQueue()
        self._chunk = self._rest = END
        self._ended = False

    def put(self, item: memoryview | BaseException) -> None:
        """Append a chunk, `END`, or an error to raise in the reader."""
        self._queue.put(item)

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See `io.RawIOBase`; raises an error that was put in place of a chunk."""
        if not self._rest and not self._ended:
            self._next()
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def discard(self) -> None:
        """Discard the chunks that nothing will read. Not while another thread reads."""
        while not self._queue.empty():
            item = self._queue.get()
            if isinstance(item, memoryview):
                self._on_used(len(item))
        self._on_used(len(self._chunk))
        self._chunk = self._rest = END

    def _next(self) -> None:
        self._on_used(len(self._chunk))
        self._chunk = self._rest = END
        item = self._queue.get()
        if isinstance(item, BaseException):
            raise item
        self._chunk = self._rest = item
        self._ended = not item

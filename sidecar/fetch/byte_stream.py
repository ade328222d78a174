"""Chunks that one thread writes and another reads."""

from __future__ import annotations

import io
from collections.abc import Callable
from queue import SimpleQueue

END = memoryview(b"")
"""Comes after the last chunk."""


MAX_READ_BYTES = 1 << 20
"""The most that is ever read at once, and the most that the headers of one member may take: names, extended
attributes, the map of a sparse file. A library reads them whole, so a header that claims more is no header
but an attack on memory."""


class ByteStream(io.RawIOBase):
    """Chunks that one thread puts and another reads, in order."""

    def __init__(self, used: Callable[[int], object]) -> None:
        """Is given a function that is told the length of each chunk that has been read, in its thread."""
        super().__init__()
        self._used = used
        self._queue: SimpleQueue[memoryview | BaseException] = SimpleQueue()
        self._chunk = self._left = END
        self._ended = False

    def put(self, item: memoryview | BaseException) -> None:
        """Bring the next chunk, `END`, or the error that the reader is to meet."""
        self._queue.put(item)

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See `io.RawIOBase`; raises what was put in the place of a chunk."""
        if not self._left and not self._ended:
            self._next()
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def drop(self) -> None:
        """Nobody reads any more: give back what has not been read. Not while another thread reads."""
        while not self._queue.empty():
            item = self._queue.get()
            if isinstance(item, memoryview):
                self._used(len(item))
        self._used(len(self._chunk))
        self._chunk = self._left = END

    def _next(self) -> None:
        self._used(len(self._chunk))
        self._chunk = self._left = END
        item = self._queue.get()
        if isinstance(item, BaseException):
            raise item
        self._chunk = self._left = item
        self._ended = not item

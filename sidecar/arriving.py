"""Bytes that arrive in order, as files that can be read once: for libraries that read archives."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from queue import SimpleQueue
from typing import IO, Protocol, cast

from podferry.sidecar.archives import Kind

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

__all__ = ["END", "Arriving", "Forward", "Readable", "ZstdError", "decompressed"]

END = memoryview(b"")
"""Comes after the last chunk."""
BUFFER = 1 << 16
"""Bytes that cross from a chunk to a decompressor at once."""
AT_ONCE = 1 << 20
"""The most that is ever read at once, and the most that the headers of one member may take: names, extended
attributes, the map of a sparse file. A library reads them whole, so a header that claims more is no header
but an attack on memory."""


class Arriving(io.RawIOBase):
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


class Readable(Protocol):
    """What can be read."""

    def read(self, size: int, /) -> bytes:
        """So many bytes, fewer at the end alone."""


def decompressed(kind: Kind, source: io.RawIOBase) -> Readable:
    """The tar archive in a file. Trailing rubbish and wrong checksums raise what the libraries raise."""
    buffered = io.BufferedReader(source, BUFFER)
    if kind in {Kind.TAR_GZ, Kind.TGZ}:
        return gzip.GzipFile(fileobj=buffered)
    if kind is Kind.TAR_ZST:
        return cast("Readable", ZstdFile(buffered))
    return buffered


class MalformedError(ValueError):
    """An archive asks for what no archive needs."""


class Forward:
    """A file that only goes forward: `tarfile` and `zipfile` seek in what they take for a file on disk."""

    def __init__(self, source: Readable, start: int = 0) -> None:
        self.last = b""
        self._source = source
        self._at = start
        self._allowed = AT_ONCE

    def allow(self) -> None:
        """Another member begins, or its next part."""
        self._allowed = AT_ONCE

    def read(self, size: int = -1) -> bytes:
        """So many bytes, fewer at the end alone; `last` keeps them.

        Raises:
            MalformedError: More than one member's headers may take.
        """
        if not 0 <= size <= self._allowed:
            raise MalformedError(f"the headers of a member take more than {AT_ONCE:,} bytes")
        self._allowed -= size
        self.last = self._source.read(size)
        self._at += len(self.last)
        return self.last

    def tell(self) -> int:
        """Bytes from the beginning of the archive."""
        return self._at

    def seek(self, position: int, whence: int = 0) -> int:
        """Skip to a position further on.

        Raises:
            MalformedError: It lies behind.
        """
        if whence or position < self._at:
            raise MalformedError(f"members overlap: from byte {self._at:,} back to {position:,}")
        while self._at < position:
            skipped = len(self._source.read(min(position - self._at, AT_ONCE)))
            if not skipped:
                break
            self._at += skipped
        return self._at

    def seekable(self) -> bool:
        """As far as it goes."""
        return True

    def as_file(self) -> IO[bytes]:
        """Itself, as the libraries' stubs want it."""
        return cast("IO[bytes]", self)

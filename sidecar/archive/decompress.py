"""Bytes that arrive in order, as files that can be read once: for libraries that read archives."""

from __future__ import annotations

import gzip
import io
import sys
from typing import IO, Protocol, cast

from podferry.sidecar.archive.rules import ArchiveKind
from podferry.sidecar.fetch.byte_stream import MAX_READ_BYTES

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

__all__ = ["ForwardOnlyReader", "MalformedError", "Readable", "ZstdError", "decompressed"]

BUFFER = 1 << 16
"""Bytes that cross from a chunk to a decompressor at once."""


class Readable(Protocol):
    """What can be read."""

    def read(self, size: int, /) -> bytes:
        """So many bytes, fewer at the end alone."""


def decompressed(kind: ArchiveKind, source: io.RawIOBase) -> Readable:
    """The tar archive in a file. Trailing rubbish and wrong checksums raise what the libraries raise."""
    buffered = io.BufferedReader(source, BUFFER)
    if kind in {ArchiveKind.TAR_GZ, ArchiveKind.TGZ}:
        return gzip.GzipFile(fileobj=buffered)
    if kind is ArchiveKind.TAR_ZST:
        return cast("Readable", ZstdFile(buffered))
    return buffered


class MalformedError(ValueError):
    """An archive asks for what no archive needs."""


class ForwardOnlyReader:
    """A file that only goes forward: `tarfile` and `zipfile` seek in what they take for a file on disk."""

    def __init__(self, source: Readable, start: int = 0) -> None:
        self.last = b""
        self._source = source
        self._at = start
        self._allowed = MAX_READ_BYTES

    def allow(self) -> None:
        """Another member begins, or its next part."""
        self._allowed = MAX_READ_BYTES

    def read(self, size: int = -1) -> bytes:
        """So many bytes, fewer at the end alone; `last` keeps them.

        Raises:
            MalformedError: More than one member's headers may take.
        """
        if not 0 <= size <= self._allowed:
            raise MalformedError(f"the headers of a member take more than {MAX_READ_BYTES:,} bytes")
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
            skipped = len(self._source.read(min(position - self._at, MAX_READ_BYTES)))
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

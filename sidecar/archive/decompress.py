"""Byte streams as the file objects that `tarfile`, `zipfile` and the decompressors read."""

from __future__ import annotations

import gzip
import io
import sys
from typing import IO, Protocol, cast

from podferry.sidecar.archive.unpack_rules import ArchiveKind
from podferry.sidecar.fetch.byte_stream import MAX_READ_BYTES

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

__all__ = ["ForwardOnlyReader", "MalformedError", "Readable", "ZstdError", "decompress"]

BUFFER_BYTES = 1 << 16
"""Copied from a chunk to a decompressor per read."""


class Readable(Protocol):
    """A file that can be read."""

    def read(self, size: int, /) -> bytes:
        """`size` bytes, fewer only at the end."""


def decompress(kind: ArchiveKind, source: io.RawIOBase) -> Readable:
    """The tar archive in a file. Trailing garbage and wrong checksums raise the libraries' own errors."""
    buffered = io.BufferedReader(source, BUFFER_BYTES)
    if kind in {ArchiveKind.TAR_GZ, ArchiveKind.TGZ}:
        return gzip.GzipFile(fileobj=buffered)
    if kind is ArchiveKind.TAR_ZST:
        return cast("Readable", ZstdFile(buffered))
    return buffered


class MalformedError(ValueError):
    """An archive needs more memory, or earlier bytes, than any valid archive does."""


class ForwardOnlyReader:
    """A file that only moves forward: `tarfile` and `zipfile` seek as if it were on disk.

    Attributes:
        last_read: What the last `read` returned.
        position: Bytes from the start of the archive.
    """

    def __init__(self, source: Readable, start: int = 0) -> None:
        self.last_read = b""
        self.position = start
        self._source = source
        self._header_bytes_left = MAX_READ_BYTES

    def reset_header_limit(self) -> None:
        """Call before each member, and before each part of its content."""
        self._header_bytes_left = MAX_READ_BYTES

    def read(self, size: int = -1) -> bytes:
        """`size` bytes, fewer only at the end; `MalformedError` if a member's headers take too much."""
        if not 0 <= size <= self._header_bytes_left:
            raise MalformedError(f"the headers of a member take more than {MAX_READ_BYTES:,} bytes")
        self._header_bytes_left -= size
        self.last_read = self._source.read(size)
        self.position += len(self.last_read)
        return self.last_read

    def tell(self) -> int:
        """See `io.IOBase`."""
        return self.position

    def seek(self, position: int, whence: int = 0) -> int:
        """Skip to a later position; raises `MalformedError` if it is earlier."""
        if whence or position < self.position:
            raise MalformedError(f"members overlap: from byte {self.position:,} back to {position:,}")
        while self.position < position:
            skipped = len(self._source.read(min(position - self.position, MAX_READ_BYTES)))
            if not skipped:
                break
            self.position += skipped
        return self.position

    def seekable(self) -> bool:
        """Forward only."""
        return True

    def as_file(self) -> IO[bytes]:
        """Itself, with the type that the libraries' stubs require."""
        return cast("IO[bytes]", self)

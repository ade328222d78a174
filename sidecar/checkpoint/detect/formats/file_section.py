"""A part of a file as a file of its own: a member of an archive."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class _Section(io.RawIOBase):
    """Reads with `pread`, so that several sections of one file do not disturb each other."""

    def __init__(self, descriptor: int, start: int, size: int) -> None:
        self._descriptor, self._start, self._size, self._position = descriptor, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """See `io.RawIOBase`; the descriptor's own position stays as it is."""
        view = memoryview(buffer).cast("B")
        wanted = max(0, min(len(view), self._size - self._position))
        data = os.pread(self._descriptor, wanted, self._start + self._position)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)


def section(file: BinaryIO, start: int, size: int) -> BinaryIO:
    """The bytes from `start` on, at most `size` of them; the file must stay open."""
    return io.BufferedReader(_Section(file.fileno(), start, size))


def size_of(file: BinaryIO) -> int:
    """Its size in bytes; the position goes back to the beginning."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def position_in(file: BinaryIO) -> int:
    """Where the next read begins, in bytes from the beginning."""
    return file.seek(0, os.SEEK_CUR)


def read_exactly(file: BinaryIO, length: int) -> bytes:
    """Read that many bytes.

    Raises:
        EOFError: There are fewer.
    """
    data = file.read(length)
    if len(data) < length:
        raise EOFError
    return data


def read_at(file: BinaryIO, start: int, length: int) -> bytes:
    """Read that many bytes from `start` on, without moving the position.

    Raises:
        EOFError: There are fewer.
    """
    data = os.pread(file.fileno(), length, start) if 0 <= start < 1 << 63 else b""
    if len(data) < length:
        raise EOFError
    return data

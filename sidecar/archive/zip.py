"""Unpacks one zip archive in a thread: first the directory at its end, then the members."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterator

from podferry.contract.errors import Refused
from podferry.contract.file_names import quoted
from podferry.sidecar.archive.decompress import ForwardOnlyReader, Readable
from podferry.sidecar.archive.member_writer import COPY_BYTES, MemberReceiver, corrupt, library_errors
from podferry.sidecar.archive.unpack_rules import MAX_NAMES_SHOWN, Archive
from podferry.sidecar.fetch.byte_stream import ByteStream

MAX_DIRECTORY_BYTES = 64 << 20
"""Of a zip archive's directory: half a million members, which Python keeps as objects."""
REJECTED_TYPES = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
ENCRYPTED_FLAG = 1
"""A bit of a zip member's flags. Source: PKWARE's APPNOTE, 4.4.4."""


class NeedEarlierBytesError(Exception):
    """The directory starts before the bytes that were fetched; `position` is the first byte needed."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class ZipTail(io.RawIOBase):
    """The last bytes of a zip archive as a file, for `zipfile`; later the stream of its members.

    1. Pass it to `ZipUnpacker`, which reads the directory.
    2. Call `follow`; from then on it reads the stream, forward only.
    """

    def __init__(self, size: int, start: int, data: memoryview) -> None:
        super().__init__()
        self._size, self._start, self._data = size, start, data
        self._position = 0
        self._stream: ForwardOnlyReader | None = None

    def follow(self, source: io.RawIOBase, start: int) -> ForwardOnlyReader:
        """Read the stream from now on."""
        self._data = memoryview(b"")
        self._stream = ForwardOnlyReader(io.BufferedReader(source, COPY_BYTES), start)
        return self._stream

    def read(self, size: int | None = -1, /) -> bytes:
        """See `io.RawIOBase`; raises `NeedEarlierBytesError` if the tail is too short."""
        if self._stream is not None:
            return self._stream.read(-1 if size is None else size)
        if self._position < self._start:
            raise NeedEarlierBytesError(self._position)
        offset = self._position - self._start
        data = bytes(self._data[offset:] if size is None or size < 0 else self._data[offset : offset + size])
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """See `io.RawIOBase`."""
        if self._stream is not None:
            return self._stream.seek(offset, whence)
        self._position = max(0, offset + (0, self._position, self._size)[whence])
        return self._position

    def tell(self) -> int:
        """See `io.RawIOBase`."""
        return self._position if self._stream is None else self._stream.position

    def seekable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True


class ZipUnpacker:
    """A zip archive whose directory has been read: headers between the members may have wrong sizes.

    1. `check` all members.
    2. `unpack` them from the stream.

    Attributes:
        start: Offset of the first member.
        members: In the order of their offsets.

    Raises:
        Corrupt: It has no directory.
        NeedEarlierBytesError: The directory starts before the tail.
    """

    def __init__(self, archive: Archive, tail: ZipTail) -> None:
        self._tail = tail
        with library_errors(archive):
            self._file = zipfile.ZipFile(tail)
        self.members = sorted(self._file.infolist(), key=lambda member: member.header_offset)
        self.start = self.members[0].header_offset if self.members else archive.entry.size

    def check(self, writer: MemberReceiver) -> None:
        """Check all members before any is written; `Refused` if one is not allowed or space is short."""
        for member in self.members:
            mode = stat.S_IFMT(member.external_attr >> 16)
            name = member.orig_filename if "\0" in member.orig_filename else member.filename
            writer.reject(name, REJECTED_TYPES.get(mode, "") or _unsupported(member))
        Refused.raise_any(writer.problems[:MAX_NAMES_SHOWN])
        writer.budget.reserve(writer.archive, [member.file_size for member in self._files()])

    def unpack(self, writer: MemberReceiver, source: ByteStream) -> None:
        """Copy the members from the stream at `start`; `Corrupt` if one does not match the directory."""
        with library_errors(writer.archive):
            file = self._tail.follow(source, self.start)
            for member in self._files():
                file.reset_header_limit()
                with self._file.open(member) as opened:
                    self._copy(writer, member, opened, file)

    def _copy(
        self, writer: MemberReceiver, member: zipfile.ZipInfo, opened: Readable, file: ForwardOnlyReader
    ) -> None:
        def read(size: int) -> bytes:
            file.reset_header_limit()
            return opened.read(size)

        writer.write(member.filename, member.file_size, read)
        if read(1):  # at the end, `zipfile` compares the checksum, even of an empty member
            raise corrupt(writer.archive, f"{quoted(member.filename)} is longer than its directory says")

    def _files(self) -> Iterator[zipfile.ZipInfo]:
        return (member for member in self.members if not member.is_dir())


def _unsupported(member: zipfile.ZipInfo) -> str:
    """Why a member cannot be read, in words, or empty.

    With other methods, `zipfile` would hold the decompressed bytes in memory at once, whatever their size.
    """
    if member.flag_bits & ENCRYPTED_FLAG:
        return "an encrypted file"
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return f"a file compressed by method {member.compress_type}; methods 0 and 8 are supported"
    return ""

"""Unpacks one zip archive aside, in a thread: its directory first, at its end, then the members in order."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterator

from podferry.contract.errors import Refused
from podferry.sidecar.archive.decompress import ForwardOnlyReader, Readable
from podferry.sidecar.archive.member_writer import CHUNK, MemberWriter, broken, whole
from podferry.sidecar.archive.rules import MAX_NAMES_SHOWN, Archive
from podferry.sidecar.fetch.byte_stream import ByteStream

MAX_DIRECTORY_BYTES = 64 << 20
"""Bytes of a zip archive's directory: half a million members, which Python holds as objects."""
MODES = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
ENCRYPTED = 1
"""The bit of a zip member's flags. Source: PKWARE's APPNOTE, 4.4.4."""


class NeedEarlierBytesError(Exception):
    """Bytes before those that are there are needed.

    Attributes:
        position: The first of them.
    """

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class ZipTail(io.RawIOBase):
    """A zip archive of which at first only the end is there; then it goes forward."""

    def __init__(self, size: int, start: int, data: memoryview) -> None:
        super().__init__()
        self._size, self._start, self._data = size, start, data
        self._at = 0
        self._following: ForwardOnlyReader | None = None

    def follow(self, source: io.RawIOBase, start: int) -> ForwardOnlyReader:
        """Read from here on what arrives."""
        self._data = memoryview(b"")
        self._following = ForwardOnlyReader(io.BufferedReader(source, CHUNK), start)
        return self._following

    def read(self, size: int | None = -1, /) -> bytes:
        """See `io.RawIOBase`.

        Raises:
            NeedEarlierBytesError: The end that is there is too short.
        """
        if self._following is not None:
            return self._following.read(-1 if size is None else size)
        if self._at < self._start:
            raise NeedEarlierBytesError(self._at)
        at = self._at - self._start
        found = bytes(self._data[at:] if size is None or size < 0 else self._data[at : at + size])
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """See `io.RawIOBase`."""
        if self._following is not None:
            return self._following.seek(offset, whence)
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def tell(self) -> int:
        """See `io.RawIOBase`."""
        return self._at if self._following is None else self._following.tell()

    def seekable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True


class ZipUnpacker:
    """A zip archive whose directory has been read: the headers between the members may lie about sizes.

    Attributes:
        start: Where the first member lies.
        members: In the order of their places.
    """

    def __init__(self, archive: Archive, tail: ZipTail) -> None:
        """Reads the directory.

        Raises:
            Corrupt: There is none.
            NeedEarlierBytesError: It begins before the end that is there.
        """
        self._tail = tail
        with whole(archive):
            self._file = zipfile.ZipFile(tail)
        self.members = sorted(self._file.infolist(), key=lambda member: member.header_offset)
        self.start = self.members[0].header_offset if self.members else archive.entry.size

    def check(self, aside: MemberWriter) -> None:
        """Look at all members before any of them is written.

        Raises:
            Refused: What must not be unpacked, or is more than there is room for.
        """
        for member in self.members:
            mode = stat.S_IFMT(member.external_attr >> 16)
            name = member.orig_filename if "\0" in member.orig_filename else member.filename
            aside.refuse(name, MODES.get(mode, "") or _unreadable(member))
        Refused.raise_any(aside.problems[:MAX_NAMES_SHOWN])
        aside.room([member.file_size for member in self._files()])

    def unpack(self, aside: MemberWriter, source: ByteStream) -> None:
        """Copy the members from what arrives.

        Raises:
            Corrupt: A member is not what the directory says.
        """
        with whole(aside.archive):
            file = self._tail.follow(source, self.start)
            for member in self._files():
                file.allow()
                with self._file.open(member) as opened:
                    self._copy(aside, member, opened, file)

    def _copy(
        self, aside: MemberWriter, member: zipfile.ZipInfo, opened: Readable, file: ForwardOnlyReader
    ) -> None:
        def read(size: int) -> bytes:
            file.allow()
            return opened.read(size)

        aside.write(member.filename, member.file_size, read)
        if read(1):  # and where nothing is left, the checksum has been looked at, of an empty member, too
            raise broken(aside.archive, f"{ascii(member.filename)[:200]} is longer than its directory says")

    def _files(self) -> Iterator[zipfile.ZipInfo]:
        return (member for member in self.members if not member.is_dir())


def _unreadable(member: zipfile.ZipInfo) -> str:
    """Why a member cannot be read, in words, empty where it can.

    What other methods decompress to, `zipfile` would hold in memory at once, whatever its size.
    """
    if member.flag_bits & ENCRYPTED:
        return "an encrypted file"
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return f"a file compressed by method {member.compress_type}, where 0 and 8 are read"
    return ""

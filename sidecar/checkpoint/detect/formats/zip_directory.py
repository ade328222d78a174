"""The directory of a zip archive, and whether it agrees with the members that it lists.

Source: PKWARE's APPNOTE.TXT, 4.3 (layout) and 4.5.3 (zip64).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from podferry.sidecar.checkpoint.detect.formats.file_section import read_at, size_of
from podferry.sidecar.checkpoint.detect.formats.verdict import Inconclusive, Torn

ZIP_MAGIC = b"PK\x03\x04"
STORED, DEFLATED = 0, 8
MAX_MEMBERS = 50_000
"""Members to look at, which takes about half a second; more are inconclusive."""
MAX_DIRECTORY_BYTES = 16 << 20
NO_DIRECTORY = "its zip directory is not written yet"
LOCAL = struct.Struct("<4s5HIII2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
LOCATOR = struct.Struct("<4sIQI")
END64 = struct.Struct("<4sQ2H2I4Q")
LONG, ENCRYPTED, ZIP64_EXTRA = 0xFFFFFFFF, 1, 1


class ZipMember(NamedTuple):
    """One file in an archive.

    Attributes:
        name: Its name.
        method: How it is compressed: `STORED`, `DEFLATED` or another number.
        packed_size: Bytes in the archive.
        size: Bytes after unpacking.
        start: Where its bytes begin in the archive.
    """

    name: str
    method: int
    packed_size: int
    size: int
    start: int


class _Entry(NamedTuple):
    member: ZipMember
    raw_name: bytes
    header: int


def starts_like_zip(file: BinaryIO) -> bool:
    """Whether it begins like an archive, as far as it goes: the first bytes may still follow."""
    file.seek(0)
    return ZIP_MAGIC.startswith(file.read(len(ZIP_MAGIC)))


def read_members(file: BinaryIO) -> list[ZipMember]:
    """The members of an archive that is complete according to its directory, in the order of their bytes.

    An archive may contain another one, whose end must not pass for its own: the directory must be where its
    end says, and the first member at byte 0.

    Raises:
        Torn: There is no directory at the end, or a member is not where the directory says.
        Inconclusive: It has more than `MAX_MEMBERS`.
        OSError: It cannot be read.
    """
    try:
        start, size = _find_directory(file, size_of(file))
        entries = sorted(_entries(read_at(file, start, size)), key=lambda entry: entry.header)
        return list(_check_members(file, entries, start))
    except (EOFError, struct.error) as error:
        raise Torn(NO_DIRECTORY) from error


def _find_directory(file: BinaryIO, size: int) -> tuple[int, int]:
    """Start and size of the directory, from the record at the end of the archive."""
    tail_start = max(0, size - END.size - 0xFFFF)
    tail = read_at(file, tail_start, size - tail_start)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0:
        raise Torn(NO_DIRECTORY)
    *_, count, length, start, comment = END.unpack_from(tail, at)
    if tail_start + at + END.size + comment != size:
        raise Torn(NO_DIRECTORY)
    end = tail_start + at
    locator = read_at(file, max(0, end - LOCATOR.size), LOCATOR.size)
    if locator.startswith(b"PK\x06\x07"):
        end = LOCATOR.unpack(locator)[2]
        magic, *_, count, length, start = END64.unpack(read_at(file, end, END64.size))
        if magic != b"PK\x06\x06":
            raise Torn(NO_DIRECTORY)
    if start + length != end:
        raise Torn(NO_DIRECTORY)
    if count > MAX_MEMBERS or length > MAX_DIRECTORY_BYTES:
        raise Inconclusive
    return start, length


def _entries(data: bytes) -> Iterator[_Entry]:
    position = 0
    while position < len(data):
        fields = CENTRAL.unpack_from(data, position)
        flags, method, packed, size, header = fields[3], fields[4], fields[8], fields[9], fields[16]
        name_end = position + CENTRAL.size + fields[10]
        raw_name, extra = data[position + CENTRAL.size : name_end], data[name_end : name_end + fields[11]]
        if fields[0] != b"PK\x01\x02":
            raise Torn(NO_DIRECTORY)
        size, packed, header = _long_values(extra, [size, packed, header])
        name = raw_name.decode("utf-8" if flags & 0x800 else "cp437", "replace")
        if method == STORED and size != packed and not flags & ENCRYPTED:
            raise Torn(f"its member {name} has {packed} bytes, its directory says {size}")
        yield _Entry(ZipMember(name, method, packed, size, 0), raw_name, header)
        position = name_end + fields[11] + fields[12]


def _long_values(extra: bytes, values: list[int]) -> list[int]:
    """Replace values that do not fit into 32 bits by those of the zip64 field, which have this order."""
    while len(extra) >= 4 and LONG in values:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == ZIP64_EXTRA:
            longs = struct.iter_unpack("<Q", extra[4 : 4 + length // 8 * 8])
            return [next(longs, (value,))[0] if value == LONG else value for value in values]
        extra = extra[4 + length :]
    return values


def _check_members(file: BinaryIO, entries: list[_Entry], directory: int) -> Iterator[ZipMember]:
    if entries and entries[0].header != 0:
        raise Torn(NO_DIRECTORY)
    ends = [*(entry.header for entry in entries[1:]), directory][: len(entries)]
    for (member, raw_name, header), end in zip(entries, ends, strict=True):
        data = read_at(file, header, LOCAL.size + len(raw_name))
        fields, name = LOCAL.unpack_from(data), data[LOCAL.size :]
        start = header + LOCAL.size + fields[9] + fields[10]
        if (
            fields[0] != ZIP_MAGIC
            or fields[9] != len(name)
            or name != raw_name
            or start + member.packed_size > end
        ):
            raise Torn(f"its member {member.name} is not where its directory says")
        yield member._replace(start=start)

"""NumPy's `.npy` and `.npz`: the header of each array gives its size.

`savez` ended by an exception writes a well-formed archive whose last array is cut short, or which lacks the
arrays that would have followed. Source: numpy/lib/_npyio_impl.py (`_savez`), numpy/lib/format.py.
"""

from __future__ import annotations

import ast
import io
import math
import re
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from podferry.sidecar.checkpoint.detect.formats.file_holes import HOLES, hole_bytes
from podferry.sidecar.checkpoint.detect.formats.file_section import (
    position_in,
    read_at,
    read_exactly,
    section,
    size_of,
)
from podferry.sidecar.checkpoint.detect.formats.pickle_walk import walk_pickles
from podferry.sidecar.checkpoint.detect.formats.verdict import (
    INCONCLUSIVE,
    FormatVerdict,
    Inconclusive,
    Torn,
    incomplete,
    unproven,
)
from podferry.sidecar.checkpoint.detect.formats.zip_archive import names_and_sizes
from podferry.sidecar.checkpoint.detect.formats.zip_directory import (
    DEFLATED,
    STORED,
    ZipMember,
    read_members,
    starts_like_zip,
)

NPY_MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 10_000
"""NumPy itself refuses longer headers (`_MAX_HEADER_SIZE`)."""
MAX_ARRAYS = 10_000
"""Arrays one after the other in one file."""
ITEM_TYPE = re.compile(r"[<>|=]?(?P<kind>[?bBiufcmMOSUVa])(?P<size>\d*)(\[.*\])?")
CHARACTER_BYTES = 4
ItemType = str | tuple["ItemType", tuple[int, ...]] | list[tuple[Any, ...]]
Header = dict[str, Any]


def npy_verdict(path: Path) -> FormatVerdict:
    """One array has its size, but may have been created at full size and filled through a mapping.

    Of several, one after the other, the last may be missing.

    Raises:
        Torn: An array is cut short.
        Inconclusive: It contains something else.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = size_of(file)
        if not size:
            return incomplete("it is empty")
        sizes: list[int] = []
        while (position := sum(sizes)) < size and len(sizes) < MAX_ARRAYS:
            sizes.append(_array_size(section(file, position, size - position), size - position))
        if sum(sizes) < size:
            raise Inconclusive
        holes = hole_bytes(file)
    if len(sizes) == 1 and not holes:
        raise Inconclusive
    return unproven((("arrays", len(sizes)), (HOLES, holes)))


def npz_verdict(path: Path) -> FormatVerdict:
    """No array is cut short; one may be missing.

    Raises:
        Torn: The archive or an array is incomplete.
        Inconclusive: It has too many members.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return incomplete("it is empty")
        if not starts_like_zip(file):
            return INCONCLUSIVE
        members = read_members(file)
        whole = {one.name for one in members if one.name.endswith(".npy") and _is_whole(file, one)}
    return unproven(names_and_sizes(members, whole))


def _is_whole(file: BinaryIO, member: ZipMember) -> bool:
    """Whether a member is a whole array for certain."""
    try:
        if member.method == STORED:
            size = _array_size(section(file, member.start, member.size), member.size)
        elif member.method == DEFLATED:
            size = _array_size(_unpacked_head(file, member), member.size)
        else:
            return False
    except Inconclusive:
        return False
    except Torn as torn:
        raise Torn(f"{member.name}: {torn}") from None
    if size != member.size:
        raise Torn(f"{member.name} has {member.size} bytes, its header says {size}")
    return True


def _unpacked_head(file: BinaryIO, member: ZipMember) -> BinaryIO:
    """The beginning of a compressed member, long enough for its header."""
    packed = read_at(file, member.start, min(member.packed_size, 2 * MAX_HEADER_BYTES))
    try:
        return io.BytesIO(zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, 2 * MAX_HEADER_BYTES))
    except zlib.error as error:
        raise Torn("it cannot be unpacked") from error


def _array_size(file: BinaryIO, available: int) -> int:
    """Size of an array with its header in bytes.

    Args:
        file: It begins with the array. Its bytes may end before the array does.
        available: Bytes until the end of what contains the array.

    Raises:
        Torn: There are fewer bytes than the header says.
        Inconclusive: It is not an array, or one of objects that cannot be followed.
    """
    try:
        header = _header(file)
        item = _item_bytes(header["descr"])
        if item is None:
            return _object_array_size(file, available)
        size = position_in(file) + item * math.prod(header["shape"])
    except EOFError:
        raise Torn("its array has no end yet") from None
    except (ValueError, SyntaxError, LookupError, TypeError, MemoryError, AttributeError) as error:
        raise Inconclusive from error
    if size > available:
        raise Torn(f"its array has {available} bytes, its header says {size}")
    return size


def _header(file: BinaryIO) -> Header:
    head = read_exactly(file, len(NPY_MAGIC) + 2)
    if not head.startswith(NPY_MAGIC):
        raise Inconclusive
    form = struct.Struct("<H" if head[len(NPY_MAGIC)] == 1 else "<I")
    length = form.unpack(read_exactly(file, form.size))[0]
    if length > MAX_HEADER_BYTES:
        raise Inconclusive
    header: Header = ast.literal_eval(read_exactly(file, length).decode("utf-8", "replace").strip())
    return header


def _item_bytes(kind: ItemType) -> int | None:
    """Size of one item in bytes, None for objects.

    Raises:
        ValueError, TypeError: It is not a type of NumPy.
    """
    if isinstance(kind, str):
        match = ITEM_TYPE.fullmatch(kind)
        if match is None:
            raise ValueError
        width = CHARACTER_BYTES if match["kind"] == "U" else 1
        return None if match["kind"] == "O" else width * int(match["size"] or 1)
    if isinstance(kind, tuple):  # a type and a shape
        item = _item_bytes(kind[0])
        return None if item is None else item * math.prod(kind[1])
    items = [_item_bytes(field[1] if len(field) == 2 else (field[1], field[2])) for field in kind]
    return None if None in items else sum(filter(None, items))


def _object_array_size(file: BinaryIO, available: int) -> int:
    """Objects are pickled after the header.

    Raises:
        EOFError: Their pickle has no end.
        Inconclusive: It cannot be walked, or only its beginning is there.
    """
    start = position_in(file)
    complete = size_of(file) >= available
    file.seek(start)
    if not complete:
        raise Inconclusive
    ends = walk_pickles(file, available)
    return ends[0]

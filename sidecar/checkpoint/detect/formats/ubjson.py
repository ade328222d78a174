"""UBJSON as XGBoost writes it (`.ubj`): one value, which shows its end.

Source: ubjson.org, types and containers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

from podferry.sidecar.checkpoint.detect.formats.file_section import position_in, read_exactly, size_of
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE, FormatVerdict, Inconclusive, Torn

MAX_VALUES = 500_000
"""Values to walk, which takes about a second. An array of numbers of one type counts as one."""
NO_END = "its UBJSON has no end yet"
WIDTHS = {
    b"Z": 0,
    b"N": 0,
    b"T": 0,
    b"F": 0,
    b"i": 1,
    b"U": 1,
    b"C": 1,
    b"I": 2,
    b"l": 4,
    b"d": 4,
    b"L": 8,
    b"D": 8,
}
"""Bytes after the type of a value."""
INTEGERS = b"iUIlL"
TEXTS = b"SH"


class _Container(NamedTuple):
    """An array or object whose values are being walked; `left` is None where its end is marked."""

    closing: bytes
    left: int | None


def ubjson_verdict(path: Path) -> FormatVerdict:
    """Whether the file is one whole object.

    Raises:
        Torn: It ends inside.
        Inconclusive: It is of another kind, or has more than `MAX_VALUES`.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = size_of(file)
        head = file.read(2)
        if (size and head[:1] != b"{") or (head[1:] and head[1:] not in INTEGERS + b"}$#"):
            raise Inconclusive
        file.seek(0)
        try:
            _skip_document(file)
        except EOFError:
            raise Torn(NO_END if size else "it is empty") from None
        if position_in(file) < size:
            raise Inconclusive
        if position_in(file) > size:
            raise Torn(NO_END)
    return COMPLETE


def _skip_document(file: BinaryIO) -> None:
    stack = _skip_value(file, read_exactly(file, 1))
    for _ in range(MAX_VALUES):
        if not stack:
            return
        container = stack[-1]
        if container.left == 0:
            stack.pop()
            continue
        stack[-1] = container if container.left is None else container._replace(left=container.left - 1)
        kind = read_exactly(file, 1)
        if container.left is None and kind == container.closing:
            stack.pop()
            continue
        if container.closing == b"}":
            file.seek(_integer(file, kind), os.SEEK_CUR)
            kind = read_exactly(file, 1)
        stack += _skip_value(file, kind)
    raise Inconclusive


def _skip_value(file: BinaryIO, kind: bytes) -> list[_Container]:
    """Move past a value, or into it: the container that begins."""
    if kind in WIDTHS:
        read_exactly(file, WIDTHS[kind])
    elif kind in TEXTS:
        file.seek(_integer(file, read_exactly(file, 1)), os.SEEK_CUR)
    elif kind in (b"[", b"{"):
        return _open_container(file, b"]" if kind == b"[" else b"}")
    else:
        raise Inconclusive
    return []


def _open_container(file: BinaryIO, closing: bytes) -> list[_Container]:
    marker = read_exactly(file, 1)
    kind = None
    if marker == b"$":
        kind, marker = read_exactly(file, 1), read_exactly(file, 1)
    if marker != b"#":
        if kind is not None:
            raise Inconclusive
        file.seek(-1, os.SEEK_CUR)
        return [_Container(closing, None)]
    count = _integer(file, read_exactly(file, 1))
    if kind is None:
        return [_Container(closing, count)]
    if kind not in WIDTHS or closing == b"}":
        raise Inconclusive
    file.seek(count * WIDTHS[kind], os.SEEK_CUR)
    return []


def _integer(file: BinaryIO, kind: bytes) -> int:
    """A length, in big-endian order as the format demands."""
    if kind not in INTEGERS:
        raise Inconclusive
    value = int.from_bytes(read_exactly(file, WIDTHS[kind]), "big", signed=kind != b"U")
    if value < 0:
        raise Inconclusive
    return value

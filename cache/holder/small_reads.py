"""Reads small files at once, one or many in a row: more calls would cost more than the bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podferry.cache.holder.version import Version
from podferry.contract.bundle import MAX_BYTES, bundle_positions
from podferry.contract.manifest import Entry

PIECE_BYTES = 64 * 1024
"""Of a bundle, read at a time: what a connection takes of a holder's memory if its reader is slow."""


def read_small(path: str | os.PathLike[str], size: int) -> bytes | None:
    """A file of this size, or None if it is gone, cannot be read or has another one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            body = os.read(descriptor, size + 1)
        finally:
            os.close(descriptor)
    except OSError:  # also of the read: of a damaged disk, or a directory in its place
        return None
    return body if len(body) == size else None


class Content(NamedTuple):
    """Bytes to send, read while they are sent: what a slow reader has not taken yet is not kept in memory.

    Attributes:
        length: Of all pieces.
        pieces: Raises `FileNotFoundError` for a file that is gone or has another size.
    """

    length: int
    pieces: Iterator[bytes]


def open_bundle(version: Version, name: str) -> Content | None:
    """The files of a bundle, or None if the version does not have them, or they are too much."""
    positions, entries = bundle_positions(name), version.document.manifest.entries
    if positions is None or positions[-1] >= len(entries):
        return None
    wanted = [entries[position] for position in positions]
    length = sum(entry.size for entry in wanted)
    return Content(length, _pieces(str(version.root), wanted)) if length <= MAX_BYTES else None


def _pieces(root: str, entries: Iterable[Entry]) -> Iterator[bytes]:
    bodies: list[bytes] = []
    size = 0
    for entry in entries:
        body = read_small(f"{root}/{entry.name}", entry.size)
        if body is None:
            raise FileNotFoundError(entry.name)
        bodies.append(body)
        size += len(body)
        if size >= PIECE_BYTES:
            yield b"".join(bodies)
            bodies, size = [], 0
    yield b"".join(bodies)


def read_bundle(version: Version, name: str) -> bytes | None:
    """All of a bundle, or None if `open_bundle` has none, or a file of it is gone."""
    found = open_bundle(version, name)
    try:
        return None if found is None else b"".join(found.pieces)
    except FileNotFoundError:
        return None

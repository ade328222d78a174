"""Reads small files at once, one or many in a row: more calls would cost more than the bytes."""

from __future__ import annotations

import os

from podferry.cache.holder.version import Version
from podferry.contract.bundle import MAX_BYTES, bundle_positions


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


def read_bundle(version: Version, name: str) -> bytes | None:
    """The files of a bundle, or None if the version does not have them, or they are too much."""
    positions, entries = bundle_positions(name), version.document.manifest.entries
    if positions is None or positions[-1] >= len(entries):
        return None
    wanted = [entries[position] for position in positions]
    if sum(entry.size for entry in wanted) > MAX_BYTES:
        return None
    root, bodies = str(version.root), []
    for entry in wanted:
        body = read_small(f"{root}/{entry.name}", entry.size)
        if body is None:
            return None
        bodies.append(body)
    return b"".join(bodies)

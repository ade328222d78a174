"""Reads uploaded files again: their identity may hide new content.

Inode, size and modification time stay the same if a trainer writes through a memory mapping (on tmpfs only
the first store to each page touches the time), patches a file and sets its time back, or copies another one
over it with its times. Whether a file is mapped is unknown: processes of another container may be out of
sight. So the content decides.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from podferry.contract.errors import Changed
from podferry.sidecar.outputs.scan import StableReader
from podferry.sidecar.runtime.file_identity import FileIdentity


class Sent(NamedTuple):
    """A file as the destination has it.

    Attributes:
        identity: What was read.
        conclusive: See `StableReader`.
        digest: XXH3-128 of the content.
        read_at: When reading began for the last time, by a monotonic clock.
    """

    identity: FileIdentity
    conclusive: bool
    digest: bytes
    read_at: float


class Reread(NamedTuple):
    """Names of files by what a second look has found.

    Attributes:
        changed: Other content than was sent.
        same: The same content, or none that can be read any more.
        left: There was no time to read them.
    """

    changed: frozenset[str]
    same: frozenset[str]
    left: frozenset[str]


def reread(root: Path, files: Mapping[str, Sent], until: float) -> Reread:
    """Compare files with what was sent, until `until` (monotonic seconds), the last modified first.

    On a disk, the store after each writeback moves the time too, so files that are mapped are among these.
    """
    changed, same, left = set[str](), set[str](), set[str]()
    for name in sorted(files, key=lambda name: -files[name].identity.mtime_ns):
        found = None if time.monotonic() >= until else _has_changed(root / name, files[name], until)
        (left if found is None else changed if found else same).add(name)
    return Reread(frozenset(changed), frozenset(same), frozenset(left))


def _has_changed(path: Path, sent: Sent, until: float) -> bool | None:
    """Whether the content differs from what was sent; None if time is up."""
    reader = StableReader(path, sent.identity)
    try:
        for _ in reader.body():
            if time.monotonic() >= until:
                return None  # a file of many GiB
    except Changed:
        return True
    except OSError:  # removed, or made unreadable: the destination keeps what was sent
        return False
    return (reader.read, reader.digest) != (sent.identity, sent.digest)

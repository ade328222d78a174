"""The stage's calls of the system. A file costs some microseconds: those for each have no `Path` in them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from podferry.contract.errors import Refused
from podferry.contract.quantity import format_bytes

PARTIAL_DIR = ".podferry-partial"
"""Where files grow, on the stage's own file system; gone when the stage is whole."""
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
NO_FILE = -1
"""Stands for the size of what is neither a directory nor a regular file: a link, a pipe."""


def contents(root: str, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The name and size of everything that is no directory, what grows aside left out."""
    with os.scandir(root) as found:
        children = list(found)
    for child in children:
        name = prefix + child.name
        if child.is_dir(follow_symlinks=False):
            if name != PARTIAL_DIR:
                yield from contents(child.path, name + "/")
        else:
            regular = child.is_file(follow_symlinks=False)
            yield name, child.stat().st_size if regular else NO_FILE


def prune(root: Path, name: str) -> None:
    """Remove the directories above a file that is gone, as far as they are empty."""
    parent = name.rpartition("/")[0]
    while parent:
        try:
            (root / parent).rmdir()
        except OSError:  # not empty, or gone already
            return
        parent = parent.rpartition("/")[0]


def create(path: str, mode: int = 0o600) -> int:
    """A new file; what an attempt before left under its name is removed."""
    try:
        return os.open(path, NEW, mode)
    except FileExistsError:
        os.unlink(path)  # noqa: PTH108 - as in `put`
        return os.open(path, NEW, mode)


def umask_now() -> int:
    """What this process leaves out of the modes of new files; reading it sets it for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_refused(root: Path, name: str, error: OSError) -> Refused:
    """The error to raise when `name` could not be written to the stage at `root`."""
    if error.errno != errno.ENOSPC:
        remedy = "Check the volume and its permissions"
        return Refused.of(f"{name} cannot be written to the stage", str(error), remedy)
    volume = os.statvfs(root)
    free = f"{format_bytes(volume.f_bavail * volume.f_frsize)} and {volume.f_favail:,} inodes are free"
    what = f"the volume was full while {name} was being written: something else may be writing to it"
    return Refused.of(what, free, "Give the dataset a larger volume, or one of its own")


def write_all(descriptor: int, data: memoryview, start: int) -> None:
    """`os.pwrite` may write less than it was given."""
    while len(data):
        written = os.pwrite(descriptor, data, start)
        data, start = data[written:], start + written

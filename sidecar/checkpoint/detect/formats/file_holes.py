"""Holes: parts of a file that nobody has written. A writer that sets the size first leaves them.

Only the file system can show them: a reader sees zeros.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

HOLES = "(never written)"
"""The name of holes among the members of a verdict."""
MAX_HOLES = 10_000
"""Holes to count, which takes about 20 ms."""
KEEPS_ZEROS = frozenset(("ext2", "ext3", "ext4", "tmpfs", "xfs"))
"""File systems on which written zeros never become a hole. ZFS makes holes of them, and so may network file
systems that are stored on it."""


def hole_bytes(file: BinaryIO) -> int:
    """Bytes in holes; 0 where the file system cannot say. Holes smaller than a block count as data."""
    if not hasattr(os, "SEEK_HOLE"):
        return 0
    descriptor, total, position = file.fileno(), 0, 0
    size = os.fstat(descriptor).st_size
    try:
        for _ in range(MAX_HOLES):
            hole = os.lseek(descriptor, position, os.SEEK_HOLE)
            if hole >= size:
                break
            position = _data_after(descriptor, hole, size)
            total += position - hole
    except OSError:
        return total
    return total


def _data_after(descriptor: int, hole: int, size: int) -> int:
    try:
        return os.lseek(descriptor, hole, os.SEEK_DATA)
    except OSError:  # ENXIO: the hole reaches the end
        return size


def zeros_stay_written(file: BinaryIO, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Whether a hole in this file proves that nobody wrote there."""
    device = os.fstat(file.fileno()).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except (OSError, ValueError):
        return False
    kinds = {fields[fields.index("-") + 1] for fields in lines if len(fields) > 3 and fields[2] == number}
    return bool(kinds) and kinds <= KEEPS_ZEROS

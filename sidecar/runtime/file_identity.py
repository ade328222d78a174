"""What identifies a version of a file, and a scan of a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class FileIdentity(NamedTuple):
    """What changes whenever a file's content does, stores through a mapping apart."""

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, stat: os.stat_result) -> FileIdentity:
        """The identity that a stat call shows."""
        return cls(stat.st_ino, stat.st_size, stat.st_mtime_ns)


Files = tuple[tuple[str, FileIdentity], ...]
"""Names with their identities."""


class Ignored(Enum):
    """Why something in a directory is no file."""

    LINK = "a symbolic link"
    SPECIAL = "a socket, a pipe or a device"
    UNREADABLE = "a directory that may not be read"


def scan(root: Path) -> dict[str, FileIdentity]:
    """Every regular file below `root` by its name relative to it; symbolic links are not followed.

    A file that goes while the scan runs is left out. A directory below the root that may not be read stands
    for what it holds: a checkpoint with such a one cannot be held, so it is never taken for whole without it.
    """
    files = {}
    for name, found in walk(root):
        if isinstance(found, FileIdentity):
            files[name] = found
        elif found is Ignored.UNREADABLE:
            files[name] = FileIdentity.of((root / name).stat())
    return files


def walk(root: Path) -> Iterator[tuple[str, FileIdentity | Ignored]]:
    """All that lies below `root`, by its name relative to it: a regular file's identity, or why it is none.

    Raises:
        PermissionError: The directory itself cannot be read.
    """
    return _walk(str(root), "")


def _walk(directory: str, prefix: str) -> Iterator[tuple[str, FileIdentity | Ignored]]:
    try:
        with os.scandir(directory) as found:
            children = list(found)
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError:
        if not prefix:
            raise
        yield prefix.rstrip("/"), Ignored.UNREADABLE
        return
    for child in children:
        name = prefix + child.name
        if child.is_dir(follow_symlinks=False):
            yield from _walk(child.path, name + "/")
        elif child.is_file(follow_symlinks=False):
            try:
                yield name, FileIdentity.of(child.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
        else:
            yield name, Ignored.LINK if child.is_symlink() else Ignored.SPECIAL

"""Identifies versions of files, and scans a directory for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class FileIdentity(NamedTuple):
    """Changes whenever a file's content does, unless its writer uses a memory mapping or sets its time back.

    `podferry.sidecar.checkpoint.pipeline.suspect_files` has the signs of that.
    """

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, stat: os.stat_result) -> FileIdentity:
        """The identity in a stat result."""
        return cls(stat.st_ino, stat.st_size, stat.st_mtime_ns)


Files = tuple[tuple[str, FileIdentity], ...]
"""Names and identities."""


class Ignored(Enum):
    """Why a directory entry is not a file."""

    LINK = "a symbolic link"
    SPECIAL = "a socket, a pipe or a device"
    UNREADABLE = "a directory that may not be read"


def scan(root: Path) -> dict[str, FileIdentity]:
    """Every regular file below `root` by its relative name; symbolic links are not followed.

    A file that is removed during the scan is left out. An unreadable directory is listed like a file: a
    checkpoint with one cannot be held, so it must never look complete without it.
    """
    files = {}
    for name, found in walk(root):
        if isinstance(found, FileIdentity):
            files[name] = found
        elif found is Ignored.UNREADABLE:
            files[name] = FileIdentity.of((root / name).stat())
    return files


def walk(root: Path) -> Iterator[tuple[str, FileIdentity | Ignored]]:
    """Everything below `root` by relative name: a file's identity, or why the entry is not one.

    Raises `PermissionError` if `root` itself is unreadable.
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

"""Where a symbolic link leads, as long as it stays within one directory.

A link is never followed by the system: its parts are looked up one by one, so no path leaves the directory,
whatever is replaced meanwhile. A trainer must not have files of its agent uploaded.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

MAX_LINKS = 40
"""Links on the way to one file, as in Linux; more are a loop."""


class LinkRefused(Exception):
    """A name leads to no file or directory within the root; the text says why."""


class LeavesRoot(LinkRefused):
    """A link that leaves the directory."""

    def __init__(self) -> None:
        super().__init__("a link that leaves the directory")


def resolve_within(root: Path, name: str) -> str:
    """The name relative to `root` of what `name` is, without links; `.` is the root itself.

    Raises:
        LinkRefused: It is outside, or there is nothing.
    """
    left, found, links = list(reversed(PurePosixPath(name).parts)), list[str](), 0
    while left:
        part = left.pop()
        if part == "..":
            if not found:
                raise LeavesRoot
            found.pop()
            continue
        target = _read_link(root.joinpath(*found, part))
        if target is None:
            found.append(part)
            continue
        links += 1
        if links > MAX_LINKS:
            raise LinkRefused("a link that leads to itself")
        if target.is_absolute():
            target, found = _relative(target, root), []
        left.extend(reversed(target.parts))
    return "/".join(found) or "."


def _read_link(path: Path) -> PurePosixPath | None:
    """The text of a link, None if the path is none."""
    try:
        mode = path.lstat().st_mode
        return PurePosixPath(path.readlink()) if stat.S_ISLNK(mode) else None
    except (FileNotFoundError, NotADirectoryError):
        raise LinkRefused("a link to nothing") from None
    except OSError as error:
        raise LinkRefused(f"a link that cannot be read: {error.strerror}") from error


def _relative(target: PurePosixPath, root: Path) -> PurePosixPath:
    for known in (root, root.resolve()):
        if target.is_relative_to(known):
            return target.relative_to(known)
    raise LeavesRoot


def stat_within(root: Path, name: str) -> os.stat_result:
    """The status of a name below `root` that has no links on its way; `LinkRefused` if it has one now."""
    *folders, last = PurePosixPath(name).parts or (".",)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = os.open(folder, flags, dir_fd=opened)
            os.close(opened)
            opened = inner
        return os.stat(last, dir_fd=opened, follow_symlinks=False)
    except OSError as error:
        raise LinkRefused(f"a link that cannot be followed: {error.strerror}") from error
    finally:
        os.close(opened)

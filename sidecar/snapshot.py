"""What lies in the checkpoint directory, and since when it has been so.

The scan is the shell; `Tracker.update` is pure but for what it remembers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class Identity(NamedTuple):
    """What changes whenever a file's content does, stores through a mapping apart."""

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, stat: os.stat_result) -> Identity:
        """The identity that a stat call shows."""
        return cls(stat.st_ino, stat.st_size, stat.st_mtime_ns)


Files = tuple[tuple[str, Identity], ...]
"""Names with their identities."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it was last seen.

    Attributes:
        identity: Inode, size, mtime.
        since: When this identity was first seen, by a monotonic clock in seconds.
        closed: Whether it was seen closed, or moved in, in this identity.
    """

    identity: Identity
    since: float
    closed: bool


class LeftOut(Enum):
    """Why something in a directory is no file."""

    LINK = "a symbolic link"
    SPECIAL = "a socket, a pipe or a device"
    UNREADABLE = "a directory that may not be read"


def scan(root: Path) -> dict[str, Identity]:
    """Every regular file below `root` by its name relative to it; symbolic links are not followed.

    A file that goes while the scan runs is left out. A directory below the root that may not be read stands
    for what it holds: a checkpoint with such a one cannot be held, so it is never taken for whole without it.
    """
    files = {}
    for name, found in walk(root):
        if isinstance(found, Identity):
            files[name] = found
        elif found is LeftOut.UNREADABLE:
            files[name] = Identity.of((root / name).stat())
    return files


def walk(root: Path) -> Iterator[tuple[str, Identity | LeftOut]]:
    """All that lies below `root`, by its name relative to it: a regular file's identity, or why it is none.

    Raises:
        PermissionError: The directory itself cannot be read.
    """
    return _walk(str(root), "")


def _walk(directory: str, prefix: str) -> Iterator[tuple[str, Identity | LeftOut]]:
    try:
        with os.scandir(directory) as found:
            children = list(found)
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError:
        if not prefix:
            raise
        yield prefix.rstrip("/"), LeftOut.UNREADABLE
        return
    for child in children:
        name = prefix + child.name
        if child.is_dir(follow_symlinks=False):
            yield from _walk(child.path, name + "/")
        elif child.is_file(follow_symlinks=False):
            try:
                yield name, Identity.of(child.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
        else:
            yield name, LeftOut.LINK if child.is_symlink() else LeftOut.SPECIAL


class Tracker:
    """Remembers since when each file has been as it is."""

    def __init__(self) -> None:
        self.files: dict[str, Seen] = {}

    def update(self, found: dict[str, Identity], closed: set[str], now: float) -> None:
        """Take in a scan.

        Args:
            found: The files as they are now.
            closed: Names whose close was reported before the scan began.
            now: A monotonic clock, seconds.
        """
        self.files = {
            name: self._seen(name, identity, name in closed, now) for name, identity in found.items()
        }

    def _seen(self, name: str, identity: Identity, closed: bool, now: float) -> Seen:
        before = self.files.get(name)
        if before is None or before.identity != identity:
            return Seen(identity, now, closed)
        if closed:
            # Closed once more without a visible change: it may have been written within one clock tick.
            return Seen(identity, now, closed=True)
        return before


class WriteTimes:
    """When the writing of each checkpoint began and when it last went on, by the files' times.

    A file's own time counts where it lies since the look before: a copy may carry the time of its original.
    """

    def __init__(self) -> None:
        self._looked = 0.0
        self._spans: dict[str, tuple[float, float]] = {}
        self._whole: set[str] = set()
        self._seen: dict[str, Files] = {}

    def update(self, present: Mapping[str, Files], now: float) -> None:
        """Take in a look.

        Args:
            present: The files of each checkpoint, by its name.
            now: Seconds since the epoch, when the look began.
        """
        self._spans = {name: span for name, span in self._spans.items() if name in present}
        self._whole &= present.keys()
        for name, files in present.items():
            fresh = set(files) - set(self._seen.get(name, ()))
            if fresh:
                times = [self._time(identity, now) for _, identity in fresh]
                begun = name in self._spans and name not in self._whole
                first = self._spans[name][0] if begun else min(times)
                self._spans[name] = (first, max(times))
                self._whole.discard(name)
        self._seen, self._looked = dict(present), now

    def _time(self, identity: Identity, now: float) -> float:
        changed = identity.mtime_ns / 1e9
        return changed if self._looked <= changed <= now else now

    def end(self, name: str) -> None:
        """The present version is whole: the next change begins another one."""
        self._whole.add(name)

    def seconds(self, name: str) -> float:
        """From the first to the last change of the present version, 0.0 for an unknown one."""
        first, last = self._spans.get(name, (0.0, 0.0))
        return last - first

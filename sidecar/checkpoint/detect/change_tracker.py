"""What lies in the checkpoint directory, and since when it has been so.

The scan is the shell; `ChangeTracker.update` is pure but for what it remembers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podferry.sidecar.runtime.file_identity import FileIdentity, Files


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as it was last seen.

    Attributes:
        identity: Inode, size, mtime.
        since: When this identity was first seen, by a monotonic clock in seconds.
        closed: Whether it was seen closed, or moved in, in this identity.
    """

    identity: FileIdentity
    since: float
    closed: bool


class ChangeTracker:
    """Remembers since when each file has been as it is."""

    def __init__(self) -> None:
        self.files: dict[str, SeenFile] = {}

    def update(self, found: dict[str, FileIdentity], closed: set[str], now: float) -> None:
        """Take in a scan.

        Args:
            found: The files as they are now.
            closed: Names whose close was reported before the scan began.
            now: A monotonic clock, seconds.
        """
        self.files = {
            name: self._seen(name, identity, name in closed, now) for name, identity in found.items()
        }

    def _seen(self, name: str, identity: FileIdentity, closed: bool, now: float) -> SeenFile:
        before = self.files.get(name)
        if before is None or before.identity != identity:
            return SeenFile(identity, now, closed)
        if closed:
            # Closed once more without a visible change: it may have been written within one clock tick.
            return SeenFile(identity, now, closed=True)
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

    def _time(self, identity: FileIdentity, now: float) -> float:
        changed = identity.mtime_ns / 1e9
        return changed if self._looked <= changed <= now else now

    def end(self, name: str) -> None:
        """The present version is whole: the next change begins another one."""
        self._whole.add(name)

    def seconds(self, name: str) -> float:
        """From the first to the last change of the present version, 0.0 for an unknown one."""
        first, last = self._spans.get(name, (0.0, 0.0))
        return last - first

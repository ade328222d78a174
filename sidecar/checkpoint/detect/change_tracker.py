"""Tracks since when each file has been unchanged, and how long each checkpoint took to write.

Fed by scans; does no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from podferry.sidecar.runtime.file_identity import FileIdentity, Files


@dataclass(frozen=True, slots=True)
class TrackedFile:
    """A file as of the last scan.

    Attributes:
        identity: Inode, size, mtime.
        since: When this identity was first seen, or first closed, by a monotonic clock in seconds.
        closed: Whether it was closed after writing, or moved in, with this identity.
        moved: Whether it was moved in with this identity.
        lingered: It already had this identity a while before its close, or may have had: it may have been
            created at full size and filled through a mapping, which changes no time that a scan sees.
        touched: Since its last close it was changed, and was never seen with another size.
        patched: That happened twice before it was closed again: one that is emptied and written again has its
            full size only once all of it is written.
    """

    identity: FileIdentity
    since: float
    closed: bool
    moved: bool = False
    lingered: bool = False
    touched: bool = False
    patched: bool = False


LINGER_SECONDS = 0.25
"""A program that writes a file closes it right after its last write; one that maps it does not."""


def _lingers(previous: TrackedFile, now: float) -> bool:
    return previous.lingered or (not previous.closed and now - previous.since > LINGER_SECONDS)


def _is_rewritten(previous: FileIdentity, now: FileIdentity) -> bool:
    return previous[:2] == now[:2] and previous != now


def _touched(previous: TrackedFile, now: FileIdentity) -> bool:
    return _is_rewritten(previous.identity, now) and (previous.closed or previous.touched)


def _patched(previous: TrackedFile, now: FileIdentity) -> bool:
    if previous.identity == now:
        return previous.patched
    before = previous.touched or (previous.patched and not previous.closed)
    return before and _is_rewritten(previous.identity, now)


def _emptied(previous: FileIdentity, now: FileIdentity) -> bool:
    """Whether a file was cut off to be written again: one that continues with it removes little."""
    return previous.inode == now.inode and 2 * now.size < previous.size


class ChangeTracker:
    """Tracks since when each file has been unchanged.

    Attributes:
        files: By name.
        emptied: What files held that were cut off since, to be written again, by name: no other change came
            before.
        watched_ns: Since when somebody watches, by the file system's clock, in nanoseconds since the epoch:
            how long an older file has had its size nobody knows.
    """

    def __init__(self) -> None:
        self.files: dict[str, TrackedFile] = {}
        self.emptied: dict[str, FileIdentity] = {}
        self._cut: dict[str, FileIdentity] = {}
        self.watched_ns = 0

    def update(
        self,
        found: dict[str, FileIdentity],
        closed: set[str],
        now: float,
        moved: Collection[str] = frozenset(),
        begun: Collection[str] = frozenset(),
    ) -> None:
        """Record a scan.

        Args:
            found: The files as they are now.
            closed: Names whose close was reported before the scan began.
            now: A monotonic clock, seconds.
            moved: The names among them that were moved in.
            begun: Names that were changed after their last close, and not before.
        """
        self._track_emptied(found, closed, begun)
        self.files = {
            name: self._tracked(name, one, now, closed=name in closed, moved=name in moved)
            for name, one in found.items()
        }

    def _track_emptied(
        self, found: Mapping[str, FileIdentity], closed: set[str], begun: Collection[str]
    ) -> None:
        """Record which files were cut off. After a close, that counts once their first change is reported."""
        known = {name: file.identity for name, file in self.files.items() if name in found}
        cut = {name: one for name, one in known.items() if _emptied(one, found[name])}
        waiting = {name: one for name, one in self._cut.items() if name in found and name not in closed} | cut
        sure = {
            name: one
            for name, one in waiting.items()
            if name in begun or name not in closed | self._cut.keys()
        }
        self._cut = {name: one for name, one in waiting.items() if name not in sure}
        self.emptied = {name: one for name, one in self.emptied.items() if name in found} | sure

    def _tracked(
        self, name: str, identity: FileIdentity, now: float, *, closed: bool, moved: bool
    ) -> TrackedFile:
        previous = self.files.get(name)
        same = previous is not None and previous.identity == identity
        if previous is not None and same and previous.closed and (previous.moved or not moved):
            return previous  # it was closed already: a program that only opens it again changes nothing
        if previous is None or not same or closed:
            lingered = same and previous is not None and _lingers(previous, now)
            unseen = previous is None and identity.mtime_ns <= self.watched_ns
            patched = previous is not None and _patched(previous, identity)
            touched = previous is not None and not closed and _touched(previous, identity)
            return TrackedFile(identity, now, closed, moved, lingered or unseen, touched, patched)
        return previous


class WriteTimes:
    """When the first and the last write of each checkpoint happened, by the files' times.

    A file's own time counts if it falls after the previous scan: a copy may carry the time of its original.
    """

    def __init__(self) -> None:
        self._last_scan = 0.0
        self._spans: dict[str, tuple[float, float]] = {}
        self._complete: set[str] = set()
        self._known: dict[str, Files] = {}

    def update(self, present: Mapping[str, Files], now: float) -> None:
        """Record a scan.

        Args:
            present: The files of each checkpoint, by its name.
            now: Seconds since the epoch, when the scan began.
        """
        self._spans = {name: span for name, span in self._spans.items() if name in present}
        self._complete &= present.keys()
        for name, files in present.items():
            changed = set(files) - set(self._known.get(name, ()))
            if changed:
                times = [self._write_time(identity, now) for _, identity in changed]
                same_version = name in self._spans and name not in self._complete
                first = self._spans[name][0] if same_version else min(times)
                self._spans[name] = (first, max(times))
                self._complete.discard(name)
        self._known, self._last_scan = dict(present), now

    def _write_time(self, identity: FileIdentity, now: float) -> float:
        changed = identity.mtime_ns / 1e9
        return changed if self._last_scan <= changed <= now else now

    def mark_complete(self, name: str) -> None:
        """The next change to this checkpoint starts a new version."""
        self._complete.add(name)

    def seconds(self, name: str) -> float:
        """From the first to the last write of the current version, 0.0 if unknown."""
        first, last = self._spans.get(name, (0.0, 0.0))
        return last - first

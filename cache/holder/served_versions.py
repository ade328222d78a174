"""The versions of a dataset that a holder serves: the current one, and earlier ones while they are read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from podferry.cache.holder.version import Version
from podferry.cache.holder.version_files import VersionFiles

UNREAD_SECONDS = 360.0
"""Without a request and a lock, until nobody reads a version: between two files, a reader computes and
writes, and an agent that fails all the time has its lock again after 5 minutes, the kubelet's back-off."""
IsLocked = Callable[[int], bool]
"""Whether somebody reads the version of this number in place."""


class ServedVersions:
    """Versions by number: a later one has a higher one.

    Args:
        files: Their directories.
        is_locked: See `IsLocked`.
        now: A monotonic clock in seconds.

    Attributes:
        current: What readers get that ask for the dataset; None for nothing.
        number: Of the current version.
    """

    def __init__(
        self,
        files: VersionFiles,
        is_locked: IsLocked = lambda number: False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.files, self._is_locked, self._now = files, is_locked, now
        self.current: Version | None = None
        self.number = 0
        self._left_at: float | None = None
        self._old: dict[int, float] = {}
        self._found: dict[int, Version] = {}

    def recover(self, least_number: int) -> None:
        """Continue what an earlier holder had begun, and take over its earlier versions. Blocks.

        Args:
            least_number: No reader has a version of a higher number.
        """
        self.files.finish(self._next_number(least_number))
        self.number = self._next_number(least_number)
        self._old = dict.fromkeys(self.files.old_numbers(), self._now())

    def _next_number(self, least: int) -> int:
        return max([least, *(number + 1 for number in self.files.old_numbers())])

    def find(self, digest: str) -> Version | None:
        """The version with this digest, of which a file is wanted."""
        for version in (self.current, *self._found.values()):
            if version is not None and version.digest == digest:
                version.used_at = self._now()
                return version
        return None

    def serve_next(self, version: Version) -> None:
        """Serve the next version, whose files are complete, from now on. Blocks for some milliseconds."""
        self.files.replace(self.number)
        if self._left_at is not None:
            self._old[self.number], self._left_at = self._now(), None
        if self.current is not None:
            self.current.root = self.files.old_root(self.number)
            self._found[self.number], self._old[self.number] = self.current, self._now()
        self.number += 1
        self.current = version

    def drop_current(self) -> None:
        """Remove the current version. Blocks."""
        self.current = self._left_at = None
        self.files.drop_served()

    @property
    def oldest(self) -> int:
        """The number of the oldest version that is left."""
        return min(self.number, *self._old) if self._old else self.number

    def keep_left(self) -> None:
        """What an earlier holder has left of another dataset is in place, and may be read."""
        self._left_at = self._now()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in place."""
        return self.current is None and self._left_at is None

    @property
    def is_read(self) -> bool:
        """Whether what is in place is read."""
        self._note_locks()
        used_at = self._left_at if self.current is None else self.current.used_at
        return used_at is not None and self._now() - used_at < UNREAD_SECONDS

    def _note_locks(self) -> None:
        """Note which versions are locked at this moment. To be called every few seconds."""
        for number, version in self._found.items():
            self._old[number] = max(self._old[number], version.used_at)
        for number in self._old:
            if self._is_locked(number):
                self._old[number] = self._now()
        if self.is_empty or not self._is_locked(self.number):
            return
        if self.current is None:
            self._left_at = self._now()
        else:
            self.current.used_at = self._now()

    async def remove_unread(self) -> bool:
        """Remove the earlier versions that nobody reads any more; whether there was one."""
        self._note_locks()
        unread = [number for number, at in self._old.items() if self._now() - at >= UNREAD_SECONDS]
        for number in unread:
            del self._old[number]
            self._found.pop(number, None)
            await asyncio.to_thread(self.files.remove_old, number)
        return bool(unread)

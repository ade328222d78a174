"""Ranges of objects for those who do not fetch whole files: tried again, with bounded bytes in flight."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from podferry.contract.errors import Corrupt
from podferry.contract.manifest import Entry
from podferry.sidecar.budget import Budget
from podferry.sidecar.settings import PrefetchSettings
from podferry.sidecar.stage import Stage
from podferry.sidecar.tasks import attempts
from podferry.storage.lane import Lane

Progress = Callable[[int, int], None]
"""Is told (files that have become whole, bytes that have come)."""


class Way(msgspec.Struct, frozen=True):
    """How bytes get into a stage.

    Attributes:
        lane: How they are fetched.
        stage: Where they go; claimed.
        settings: Requests at once, their length, and bytes in flight.
        progress: Is told of them.
    """

    lane: Lane
    stage: Stage
    settings: PrefetchSettings
    progress: Progress


class Ranges:
    """Fetches ranges; whoever gets one gives it back once its bytes are used."""

    def __init__(self, lane: Lane, settings: PrefetchSettings) -> None:
        self._lane = lane
        self._attempts = settings.attempts
        self._budget = Budget(settings.buffer_bytes)

    async def take(self, length: int) -> None:
        """Wait until so many bytes may be in flight."""
        await self._budget.take(length)

    def give(self, length: int) -> None:
        """Give bytes back. On the event loop alone."""
        self._budget.give(length)

    async def fetch(self, entry: Entry, start: int, length: int) -> memoryview:
        """Exactly `length` bytes from `start`, once there is room for them; give them back after use.

        Raises:
            Changed, NotFound, Corrupt: It is no longer what was listed.
            TemporaryError: The store did not answer, after all attempts.
        """
        await self.take(length)
        try:
            return await self.read(entry, start, length)
        except BaseException:
            self.give(length)
            raise

    async def read(self, entry: Entry, start: int, length: int) -> memoryview:
        """The same where the room for them has been taken already."""
        if not length:
            return memoryview(b"")
        async for attempt in attempts(self._attempts):
            with attempt:
                data = await self._lane.fetch(entry, start, length)
        if len(data) != length:
            measured = f"{len(data)} bytes from {start}, {length} were asked for"
            raise Corrupt.of(f"the store sent a wrong length of {entry.name}", measured)
        return data

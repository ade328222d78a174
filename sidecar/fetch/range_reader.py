"""Ranges of objects for those who do not fetch whole files: tried again, with bounded bytes in flight."""

from __future__ import annotations

import asyncio

import msgspec

from podferry.contract.manifest import Entry
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.byte_stream import ByteStream
from podferry.sidecar.fetch.fallback_client import RetryingReader
from podferry.sidecar.fetch.source import Progress
from podferry.sidecar.runtime.byte_semaphore import ByteSemaphore
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.store import Store


class FetchContext(msgspec.Struct, frozen=True):
    """How bytes get into a stage.

    Attributes:
        store: Holds the objects.
        stage: Where they go; claimed.
        settings: Requests at once, their length, and bytes in flight.
        progress: Is told of them.
    """

    store: Store
    stage: StagingDir
    settings: PrefetchSettings
    progress: Progress


class RangeReader:
    """Fetches ranges; whoever gets one gives it back once its bytes are used."""

    def __init__(self, store: Store, settings: PrefetchSettings) -> None:
        # Who uses ranges counts what becomes of them, rather than what comes.
        self._client = RetryingReader(store, settings.attempts, TransferCounters())
        self._budget = ByteSemaphore(settings.buffer_bytes)

    async def take(self, length: int) -> None:
        """Wait until so many bytes may be in flight."""
        await self._budget.take(length)

    def open_stream(self) -> ByteStream:
        """A stream for chunks of fetched ranges, each given back once it is read."""
        loop = asyncio.get_running_loop()
        return ByteStream(lambda length: loop.call_soon_threadsafe(self.give, length))

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
        except BaseException:  # a cancellation too: the room is given back
            self.give(length)
            raise

    async def read(self, entry: Entry, start: int, length: int) -> memoryview:
        """The same where the room for them has been taken already."""
        return await self._client.fetch(entry, start, length) if length else memoryview(b"")

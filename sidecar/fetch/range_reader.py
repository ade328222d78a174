"""Reads ranges of objects for archives and packs: retried, with limited bytes in flight."""

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
        settings: Concurrency, range length, and bytes in flight.
        progress: Called as files and bytes arrive.
    """

    store: Store
    stage: StagingDir
    settings: PrefetchSettings
    progress: Progress


class RangeReader:
    """Fetches ranges. The caller releases the bytes of each once it has used them."""

    def __init__(self, store: Store, settings: PrefetchSettings) -> None:
        # Not counted: the caller counts the files that it makes of the bytes.
        self._reader = RetryingReader(store, settings, TransferCounters())
        self._semaphore = ByteSemaphore(settings.buffer_bytes)

    async def acquire(self, length: int) -> None:
        """Wait until this many bytes may be in flight."""
        await self._semaphore.acquire(length)

    def open_stream(self) -> ByteStream:
        """A stream for chunks of acquired ranges, each released once it has been read."""
        loop = asyncio.get_running_loop()
        return ByteStream(lambda length: loop.call_soon_threadsafe(self.release, length))

    def release(self, length: int) -> None:
        """Release bytes. Only on the event loop."""
        self._semaphore.release(length)

    async def fetch(self, entry: Entry, start: int, length: int) -> memoryview:
        """Acquire and fetch exactly this range; release it after use. Raises as `RetryingReader.fetch`."""
        await self.acquire(length)
        try:
            return await self.fetch_acquired(entry, start, length)
        except BaseException:  # including a cancellation
            self.release(length)
            raise

    async def fetch_acquired(self, entry: Entry, start: int, length: int) -> memoryview:
        """As `fetch`, for bytes that have been acquired already."""
        return await self._reader.fetch(entry, start, length) if length else memoryview(b"")

"""Reads through the store's own client: retried, counted, and verified."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

from podferry.contract.errors import Corrupt
from podferry.contract.manifest import Entry
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.range_checksums import mismatch
from podferry.sidecar.fetch.rate_limit import RateLimit
from podferry.sidecar.fetch.sinks import Job, ObjectJob
from podferry.sidecar.runtime.retry import retry
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.checksum.checksums import Checksum, checksum_of, matches
from podferry.storage.store import Receive, Store, StreamingStore

T = TypeVar("T")

MIN_THREAD_BYTES = 1 << 20
"""From which checksums and writes run in a thread: for less, switching costs more."""


class RetryingReader:
    """Reads ranges of listed objects.

    Args:
        store: Holds the objects.
        settings: Number of times that a request is sent, or for how long.
        counters: Count bytes and retries.
        limit: Of the bytes; None for as many as arrive.
    """

    def __init__(
        self,
        store: Store,
        settings: PrefetchSettings,
        counters: TransferCounters,
        limit: RateLimit | None = None,
    ) -> None:
        self._store, self._settings, self._counters, self._limit = store, settings, counters, limit

    async def fetch_verified(self, job: Job) -> memoryview:
        """A job's bytes, fetched again until they match their checksum; raises `Corrupt` if they never do."""
        # What a response with a range has stated is the checksum of the complete object.
        expected = job.checksum if isinstance(job, ObjectJob) else None
        if expected is None:
            return await self.fetch(job.entry, job.start, job.length)
        for _ in range(self._settings.attempts):
            data = await self.fetch(job.entry, job.start, job.length)
            if await _matches(expected, data):
                return data
            self._counters.discarded += len(data)
        raise mismatch(job.entry.name, checksum_of(expected.kind, data), expected)

    async def fetch(self, entry: Entry, start: int, length: int) -> memoryview:
        """A range of an object.

        Raises `Changed`, `NotFound` or `Corrupt` if it is no longer what was listed, and `TemporaryError` if
        the store did not answer, after all attempts.
        """
        data = await self._retried(
            length, lambda: self._store.read(entry.name, start, length, entry.tag, entry.size)
        )
        if len(data) != length:
            measured = f"{len(data)} bytes from {start}, {length} were requested"
            raise Corrupt.of(f"the store sent a wrong length of {entry.name}", measured)
        self._counters.bytes += length
        return data

    async def stream(
        self, store: StreamingStore, entry: Entry, start: int, length: int, receive: Receive
    ) -> None:
        """As `fetch`, but `receive` takes the bytes, from the first one again after a failure."""
        wanted = entry.name, start, length, entry.tag, entry.size
        await self._retried(length, lambda: store.stream(*wanted, receive))
        self._counters.bytes += length

    async def _retried(self, length: int, read: Callable[[], Coroutine[object, object, T]]) -> T:
        sent = 0

        async def counted() -> T:
            nonlocal sent
            self._counters.retries += sent > 0
            sent += 1
            if self._limit is not None:
                await self._limit.take(length)
            return await read()

        return await retry(self._settings.attempts, counted, self._settings.patience_seconds)


async def _matches(expected: Checksum, data: memoryview) -> bool:
    if len(data) < MIN_THREAD_BYTES:
        return matches(expected, data)
    return await asyncio.to_thread(matches, expected, data)

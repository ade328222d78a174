"""Verifies committed files at the destination by their checksums, reading many ranges at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice

import xxhash

from podferry.contract.destination.commit import CommittedFile
from podferry.contract.errors import Changed, Corrupt, NotFound, Problem
from podferry.contract.manifest import Entry
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.runtime.byte_semaphore import ByteSemaphore
from podferry.sidecar.runtime.retry import retry

SETTINGS = PrefetchSettings()
PREFETCH_DEPTH = SETTINGS.buffer_bytes // SETTINGS.range_bytes
"""Ranges of one file that are requested at a time: as many as may be in flight."""


class ContentVerifier:
    """Verifies files; all of them share one limit of bytes in flight.

    Args:
        on_bytes: Called with the number of bytes of each range that was read.
        settings: Sizes and limits.
    """

    def __init__(
        self, on_bytes: Callable[[int], None] = lambda count: None, settings: PrefetchSettings = SETTINGS
    ) -> None:
        self._on_bytes, self._settings = on_bytes, settings
        self._buffer = ByteSemaphore(settings.buffer_bytes)
        self._files = asyncio.Semaphore(settings.in_flight)

    async def find_damage(self, store: LineageStore, file: CommittedFile) -> Problem | None:
        """What is wrong with the bytes of a file, or None if they are the committed ones.

        Raises:
            AccessDenied, TemporaryError: The store did not answer.
        """
        try:
            async with self._files:
                found = await self._digest(store, await store.stat(file.object))
        except (NotFound, Corrupt, Changed) as error:
            return error.problems[0]
        if found == file.xxh128:
            return None
        measured = f"xxh128 {found}, the commit says {file.xxh128}; {store.uri_of(file.object)}"
        return Problem(f"{file.name} is damaged", measured)

    async def _digest(self, store: LineageStore, entry: Entry) -> str:
        """The checksum of an object, range by range, while later ranges are being read."""
        digest = xxhash.xxh3_128()
        starts = iter(range(0, entry.size, self._settings.range_bytes))
        pending: deque[asyncio.Task[memoryview]] = deque()
        try:
            while True:
                more = islice(starts, PREFETCH_DEPTH - len(pending))
                pending.extend(asyncio.create_task(self._range(store, entry, start)) for start in more)
                if not pending:
                    return digest.hexdigest()
                data = await pending.popleft()
                try:
                    await asyncio.to_thread(digest.update, data)
                finally:
                    self._buffer.release(len(data))
                self._on_bytes(len(data))
        finally:
            await self._cancel(pending)

    async def _range(self, store: LineageStore, entry: Entry, start: int) -> memoryview:
        """One range. The caller releases its bytes in the buffer."""
        length = min(self._settings.range_bytes, entry.size - start)
        await self._buffer.acquire(length)
        try:
            attempts = self._settings.attempts
            return await retry(attempts, lambda: store.read(entry.name, start, length, entry.tag))
        except BaseException:  # a cancellation, too
            self._buffer.release(length)
            raise

    async def _cancel(self, pending: deque[asyncio.Task[memoryview]]) -> None:
        for task in pending:
            task.cancel()
        for data in await asyncio.gather(*pending, return_exceptions=True):
            if not isinstance(data, BaseException):
                self._buffer.release(len(data))

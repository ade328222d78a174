"""Reads committed files where they lie and compares their checksums: many ranges at once, nothing is kept."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice

import xxhash

from podferry.contract.commit import CommittedFile
from podferry.contract.errors import Changed, Corrupt, NotFound, Problem
from podferry.contract.manifest import Entry
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.runtime.byte_semaphore import ByteSemaphore
from podferry.sidecar.runtime.concurrency import retry

SETTINGS = PrefetchSettings()
PREFETCH_DEPTH = SETTINGS.buffer_bytes // SETTINGS.range_bytes
"""Ranges of one file that are asked for at a time: as many as may be in flight."""


class ContentVerifier:
    """Examines files of one destination; all of them share one bound of bytes in flight."""

    def __init__(
        self,
        came: Callable[[int], None] = lambda count: None,
        settings: PrefetchSettings = SETTINGS,
    ) -> None:
        self._came = came
        self._settings = settings
        self._budget = ByteSemaphore(settings.buffer_bytes)
        self._files = asyncio.Semaphore(settings.in_flight)

    async def flaw(self, store: LineageStore, file: CommittedFile) -> Problem | None:
        """What is wrong with the bytes of a file, None where they are those that were committed.

        Raises:
            AccessDenied, TemporaryError: The store cannot be asked.
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
        """The sum of an object, range after range, while later ones are on their way."""
        digest = xxhash.xxh3_128()
        starts = iter(range(0, entry.size, self._settings.range_bytes))
        ahead: deque[asyncio.Task[memoryview]] = deque()
        try:
            while True:
                more = islice(starts, PREFETCH_DEPTH - len(ahead))
                ahead.extend(asyncio.create_task(self._range(store, entry, start)) for start in more)
                if not ahead:
                    return digest.hexdigest()
                data = await ahead.popleft()
                try:
                    await asyncio.to_thread(digest.update, data)
                finally:
                    self._budget.give(len(data))
                self._came(len(data))
        finally:
            await self._drop(ahead)

    async def _range(self, store: LineageStore, entry: Entry, start: int) -> memoryview:
        """One range; its share of the budget is the caller's to give back."""
        length = min(self._settings.range_bytes, entry.size - start)
        await self._budget.take(length)
        try:
            return await retry(
                self._settings.attempts, lambda: store.read(entry.name, start, length, entry.tag)
            )
        except BaseException:  # a cancellation too: the room is given back
            self._budget.give(length)
            raise

    async def _drop(self, ahead: deque[asyncio.Task[memoryview]]) -> None:
        for task in ahead:
            task.cancel()
        for data in await asyncio.gather(*ahead, return_exceptions=True):
            if not isinstance(data, BaseException):
                self._budget.give(len(data))

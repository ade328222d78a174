"""Moves one file from store to store: whole, and only in the version that was listed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from podferry.contract.errors import Changed
from podferry.contract.manifest import Entry
from podferry.sidecar.config.tuning import MIB, PrefetchSettings
from podferry.sidecar.fetch.fallback_client import RetryingReader
from podferry.sidecar.fetch.read_ahead import READ_AHEAD, read_ahead
from podferry.sidecar.runtime.byte_semaphore import ByteSemaphore
from podferry.sidecar.runtime.retry import retry
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.server_copy import ServerCopy
from podferry.storage.store import Store

BUFFER_BYTES = 128 * MIB
"""Bytes in flight that were read; in addition an engine holds the parts that it sends. Four large files at a
time: a body is read in one of asyncio's threads, of which a machine of one core has five, and a local source
needs one more."""

OnBytes = Callable[[int], object]
"""Called with the bytes that have arrived; with negative ones if they are sent again."""


class FileMover:
    """Moves files; several may be moved in parallel.

    Args:
        source: Where the files are listed.
        target: The names are the same there.
        settings: Attempts, and the length of a range of a large file.
        on_bytes: See `OnBytes`.
        server_copy: Copies by complete keys, if both places are in one store that can copy.
    """

    def __init__(
        self,
        source: Store,
        target: Store,
        settings: PrefetchSettings,
        on_bytes: OnBytes,
        server_copy: ServerCopy | None = None,
    ) -> None:
        self._source, self._target, self._server_copy = source, target, server_copy
        self._settings, self._on_bytes = settings, on_bytes
        self._reader = RetryingReader(source, settings, TransferCounters())
        self._in_flight = ByteSemaphore(BUFFER_BYTES)

    async def move(self, entry: Entry) -> Entry:
        """Move a file, and return it as the destination lists it.

        Raises:
            Changed, NotFound: The source has another version by now, or the destination another one than was
                written.
            FerryError: A store refused or did not respond, after all attempts. Nothing is half written.
        """
        if self._server_copy is not None and entry.size <= self._server_copy.max_bytes:
            await self._copy(entry, self._server_copy)
        else:
            await self._send(entry)
        return await written(self._target, entry.name, entry.size, self._settings.attempts)

    async def _copy(self, entry: Entry, server_copy: ServerCopy) -> None:
        source, target = ((store.uri / entry.name).key for store in (self._source, self._target))
        await retry(self._settings.attempts, lambda: server_copy.copy(source, target))
        now = await retry(self._settings.attempts, lambda: self._source.stat(entry.name))
        if now != entry:  # which of the two was copied, the store does not say
            what = f"{self._source.uri / entry.name} has changed since it was listed"
            raise Changed.of(what, f"{now.size:,} bytes, tag {now.tag}", "Sync again")
        self._on_bytes(entry.size)

    async def _send(self, entry: Entry) -> None:
        large = entry.size > self._settings.range_bytes
        reserved = min(entry.size, (READ_AHEAD + 2) * self._settings.range_bytes)
        await self._in_flight.acquire(reserved)
        try:
            await (self._move_large(entry) if large else self._move_small(entry))
        finally:
            self._in_flight.release(reserved)

    async def _move_small(self, entry: Entry) -> None:
        data = bytes(await self._reader.fetch(entry, 0, entry.size))
        await retry(self._settings.attempts, lambda: self._target.write(entry.name, data))
        self._on_bytes(entry.size)

    async def _move_large(self, entry: Entry) -> None:
        read, loop = 0, asyncio.get_running_loop()

        def add(count: int) -> None:
            """Count bytes that have arrived."""
            nonlocal read
            read += count
            self._on_bytes(count)

        async def send() -> None:
            """Write the file from its beginning; takes back what was counted if that fails."""
            nonlocal read
            read = 0
            try:
                await self._target.write(entry.name, self._body(entry, loop, add))
            except BaseException:
                self._on_bytes(-read)
                raise

        await retry(self._settings.attempts, send)

    def _body(self, entry: Entry, loop: asyncio.AbstractEventLoop, add: OnBytes) -> Iterator[bytes]:
        def read(start: int, length: int) -> Coroutine[Any, Any, memoryview]:
            """A range of the listed version."""
            return self._reader.fetch(entry, start, length)

        for data in read_ahead(read, entry.size, self._settings.range_bytes, loop):
            loop.call_soon_threadsafe(add, len(data))
            yield bytes(data)


async def written(target: Store, name: str, size: int, attempts: int) -> Entry:
    """An object that was just written, as its store lists it.

    Raises:
        Changed: It has another size: somebody else writes there.
    """
    there = await retry(attempts, lambda: target.stat(name))
    if there.size != size:
        measured = f"{there.size:,} bytes, {size:,} were written"
        raise Changed.of(f"{target.uri / name} is not what was written", measured, "Does another sync run?")
    return there

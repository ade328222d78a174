"""The store's own client as a prefetch uses it: tried again, counted, and compared with what is to come."""

from __future__ import annotations

import asyncio

from podferry.contract.errors import Corrupt
from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.range_checksums import mismatch
from podferry.sidecar.fetch.sinks import Job, ObjectJob
from podferry.sidecar.runtime.concurrency import retry
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.checksum.checksums import Checksum, checksum_of, matches
from podferry.storage.store import Store

IN_A_THREAD = 1 << 20
"""Bytes from which summing and writing is handed to a thread: below, the hand-over costs more."""


class RetryingReader:
    """Fetches what no lean lane carries.

    Args:
        store: Holds the objects.
        tries: How often a request is sent.
        meter: Counts.
    """

    def __init__(self, store: Store, tries: int, meter: TransferCounters) -> None:
        self._store, self._tries, self._meter = store, tries, meter

    async def right(self, job: Job) -> memoryview:
        """A job's bytes, as the store's client has them; again where they do not add up.

        Raises:
            Corrupt: They never do.
        """
        # What an answer with a range has said is the sum of the whole object.
        wanted = job.sum if isinstance(job, ObjectJob) else None
        for _ in range(self._tries):
            data = await self.fetch(job.entry, job.start, job.length)
            if await _is_right(wanted, data):
                return data
            self._meter.discarded += len(data)
        assert wanted is not None  # noqa: S101 - else the first would have been right
        raise mismatch(job.entry.name, checksum_of(wanted.kind, data), wanted)

    async def fetch(self, entry: Entry, start: int, length: int) -> memoryview:
        """A range of an object.

        Raises:
            Changed, NotFound, Corrupt: It is no longer what was listed.
            TemporaryError: The store did not answer, after all attempts.
        """
        asked = 0

        async def ask() -> memoryview:
            nonlocal asked
            self._meter.retries += asked > 0
            asked += 1
            return await self._store.read(entry.name, start, length, entry.tag, entry.size)

        data = await retry(self._tries, ask)
        if len(data) != length:
            measured = f"{len(data)} bytes from {start}, {length} were asked for"
            raise Corrupt.of(f"the store sent a wrong length of {entry.name}", measured)
        self._meter.bytes += length
        return data


async def _is_right(wanted: Checksum | None, data: memoryview) -> bool:
    """Whether bytes add up, where it is known to what; summing many is handed to a thread."""
    if wanted is None or len(data) < IN_A_THREAD:
        return wanted is None or matches(wanted, data)
    return await asyncio.to_thread(matches, wanted, data)

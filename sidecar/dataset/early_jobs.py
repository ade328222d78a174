"""Which files are fetched before a dataset's listing is complete, as jobs of a connection pool."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from podferry.contract.manifest import Entry
from podferry.contract.selection import select
from podferry.contract.tmpfs_cost import PAGE_BYTES, charged_bytes
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.fetch.bundles import BundledFiles, BundleJob
from podferry.sidecar.fetch.job_queue import BATCH_JOBS, JobQueue
from podferry.sidecar.fetch.sinks import ChunkSink, Job, ObjectJob
from podferry.sidecar.fetch.source import FetchSource
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.store import BundlingStore


class EntryQueue:
    """Listed entries, and which of them to fetch.

    Args:
        selection: The dataset's.
        max_bytes: Of all files together, as charged to memory.
        max_file_bytes: Of one file.
        page_bytes: The smallest charge for a file.
    """

    def __init__(
        self, selection: Selection, max_bytes: int, max_file_bytes: int, page_bytes: int = PAGE_BYTES
    ) -> None:
        self._selection, self._bytes_left = selection, max_bytes
        self._max_file_bytes, self._page_bytes = max_file_bytes, page_bytes
        self._listed: deque[Entry] = deque()
        self._taken = set[str]()
        self._changed = asyncio.Event()
        self._closed = False

    def add(self, entry: Entry) -> None:
        """Add a listed entry, also after `close`."""
        self._closed = False
        self._listed.append(entry)
        if not self._changed.is_set():
            self._changed.set()

    def close(self) -> None:
        """Drop the entries that were not taken."""
        self._closed = True
        self._listed.clear()
        self._changed.set()

    async def take(self) -> list[tuple[int, Entry]]:
        """The next numbered entries; empty at the end."""
        while not self._closed and self._bytes_left > 0:
            page = [self._listed.popleft() for _ in range(min(BATCH_JOBS, len(self._listed)))]
            if taken := [(len(self._taken), entry) for entry in self._select(page) if self._take(entry)]:
                return taken
            if not page:
                self._changed.clear()
                await self._changed.wait()
        return []

    def _select(self, page: Sequence[Entry]) -> Sequence[Entry]:
        globs = self._selection
        return select(page, globs.include, globs.exclude) if globs.include or globs.exclude else page

    def _take(self, entry: Entry) -> bool:
        """Whether to fetch it now: empty files need no request, processes share the large ones later."""
        if not 0 < entry.size <= self._max_file_bytes or entry.name in self._taken:
            return False
        self._bytes_left -= charged_bytes([entry.size], self._page_bytes)
        if self._bytes_left < 0:
            return False
        self._taken.add(entry.name)
        return True


class EntryJobs(JobQueue):
    """Jobs for entries while they are listed.

    Args:
        source: Where they are; its store has a request builder.
        queue: The entries.
        sink: Where they go: each to a file that is called by its number.
    """

    def __init__(
        self, source: FetchSource, builder: RequestBuilder, queue: EntryQueue, sink: ChunkSink
    ) -> None:
        super().__init__(builder, iter(()), lambda job, why: None)
        self._source, self._queue, self._sink = source, queue, sink

    async def next_batch(self) -> Sequence[Job | BundleJob]:
        """See `JobSource.next_batch`."""
        while entries := await self._queue.take():
            jobs = [*self._jobs_of(dict(entries))]
            if await self.prepare(jobs):
                return jobs
        return ()

    def _jobs_of(self, entries: Mapping[int, Entry]) -> Iterator[Job | BundleJob]:
        def make_job(number: int) -> ObjectJob:
            entry = entries[number]
            file = Entry(str(number), entry.size, entry.tag)
            return ObjectJob(number, entry, file, self._sink, self._source.checksum_of(entry))

        store = self._source.store
        bundled = BundledFiles(store) if isinstance(store, BundlingStore) else None
        for number, entry in entries.items():
            if bundled is None or not bundled.add(number, entry):
                yield make_job(number)
        if bundled is not None:
            yield from bundled.jobs(make_job)

"""Runs a fetch plan: with connection pools if the store allows it, with the store's own client for the rest.

Each file is published once it is complete and verified. What the pools do not fetch goes to a queue that the
fallback tasks empty; without pools, they take the jobs of the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from podferry.contract.errors import TemporaryError
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.bundles import single_jobs
from podferry.sidecar.fetch.fallback_client import RetryingReader
from podferry.sidecar.fetch.file_assembler import FileAssembler
from podferry.sidecar.fetch.job_queue import JobQueue
from podferry.sidecar.fetch.multirange_file import RangedFile
from podferry.sidecar.fetch.plan import FetchPlan
from podferry.sidecar.fetch.pool_runner import PoolRunner
from podferry.sidecar.fetch.range_stream import RangeStream, is_streamed, range_runs
from podferry.sidecar.fetch.sinks import Job, RangeJob
from podferry.sidecar.fetch.source import FetchSource, Progress
from podferry.sidecar.runtime.byte_semaphore import ByteSemaphore
from podferry.sidecar.runtime.concurrency import gather_all
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.http.response_head import UnexpectedResponse
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.store import StreamingStore


class Fetcher:
    """One run of a plan.

    Args:
        plan, source, stage: What to fetch, where from and where to; the stage is claimed.
        settings: Concurrency, buffers, attempts and verification.
        progress, counters: Updated as files and bytes arrive.
        keep_partials: Whether the stage has partial files of others, which stay.

    Attributes:
        repaired: Names of large files of which ranges were fetched again.
    """

    def __init__(
        self,
        plan: FetchPlan,
        source: FetchSource,
        stage: StagingDir,
        settings: PrefetchSettings,
        progress: Progress = lambda files, count: None,
        counters: TransferCounters | None = None,
        *,
        keep_partials: bool = False,
    ) -> None:
        self.repaired: set[str] = set()
        self._keep_partials = keep_partials
        self._plan, self._source, self._stage, self._settings = plan, source, stage, settings
        self._counters = counters = counters or TransferCounters()
        self._builder = source.store.request_builder
        self._reader = RetryingReader(source.store, settings, counters, source.limit)
        self._repairer = RetryingReader(source.origin or source.store, settings, counters, source.limit)
        # What a pool fetches from elsewhere than the origin takes nothing from it.
        self._limit = source.limit if source.origin is None else None
        # With pools, half of the bytes in flight are theirs.
        self._semaphore = ByteSemaphore(settings.buffer_bytes // (1 if self._builder is None else 2))
        self._fallback: asyncio.Queue[Job | RangedFile | None] = asyncio.Queue()
        self._files = FileAssembler(
            plan, source, stage, settings, progress, counters, self._fallback.put_nowait
        )
        streams = source.store if isinstance(source.store, StreamingStore) else None
        self._streams = streams
        single = (one for job in self._files.jobs.take() for one in single_jobs(job))
        self._runs = range_runs(single, streams.stream_bytes if streams is not None else 0)
        bundles = self._files.bundled is not None
        self._pools = PoolRunner(plan, self._files.sink, settings, counters, bundles=bundles)

    async def run(self) -> None:
        """Fetch everything; the stage is complete on return. A failure stops everything.

        Partial files are kept if the same call may succeed later, and removed otherwise.

        Raises:
            Changed, NotFound, Corrupt: An object is not what was listed; it is named.
            TemporaryError: The store did not answer, after all attempts.
            Refused: The volume was full, or a file could not be written.
        """
        try:
            confirmation = self._files.confirmation
            confirming = [] if confirmation is None else [confirmation.run()]
            await gather_all([self._fetch_all(), *confirming])
        except (TemporaryError, asyncio.CancelledError):
            raise
        except BaseException:  # no later start can resume after any other error
            self._stage.remove_partials()
            raise
        if not self._keep_partials:
            self._stage.remove_partials()

    async def _fetch_all(self) -> None:
        tasks = range(self._settings.in_flight)
        if self._builder is not None and self._plan.files:
            if self._settings.verify and self._builder.checksum_needs_head:
                await self._fetch_checksums(self._builder)
            await gather_all([self._run_pools(self._builder), *(self._empty_fallback_queue() for _ in tasks)])
        await gather_all(self._fetch_rest() for _ in tasks)
        if self._files.confirmation is not None:
            self._files.confirmation.end()

    async def _fetch_checksums(self, builder: RequestBuilder) -> None:
        heads = self._files.head_jobs()
        if heads:
            await self._pools.run_here(JobQueue(builder, iter(heads), lambda job, reason: None))
        self._files.expect(heads)

    async def _run_pools(self, builder: RequestBuilder) -> None:
        jobs = self._files.jobs
        await self._pools.run(lambda: JobQueue(builder, jobs.take(), self._fall_back, self._limit))
        self._fallback.put_nowait(None)

    def _fall_back(self, job: Any, reason: UnexpectedResponse) -> None:
        for one in single_jobs(job):
            self._counters.why = f"{one.entry.name}: {reason}"
            self._fallback.put_nowait(one)

    # With the store's own client.

    async def _empty_fallback_queue(self) -> None:
        """Fetch what the pools do not, until they have ended."""
        while (item := await self._fallback.get()) is not None:
            await self._fetch(item)
        self._fallback.put_nowait(None)  # for the next task

    async def _fetch_rest(self) -> None:
        """Fetch what is left of the plan."""
        for run in self._runs:
            await self._fetch_run(run)
        while not self._fallback.empty():
            item = self._fallback.get_nowait()
            if item is not None:
                await self._fetch(item)

    async def _fetch_run(self, run: Sequence[Job]) -> None:
        ranges = [job for job in run if isinstance(job, RangeJob)]
        if self._streams is not None and is_streamed(run[0]):
            await self._stream(self._streams, ranges)
        else:
            await self._fetch(run[0])

    async def _stream(self, store: StreamingStore, run: Sequence[RangeJob]) -> None:
        stream, first = RangeStream(run, self._stage, self._files.record), run[0]
        length = sum(job.length for job in run)
        try:
            await self._reader.stream(store, first.entry, first.start, length, stream.receive)
            stream.end()
        except OSError as error:
            raise self._stage.write_error(first.entry.name, error) from error
        finally:
            stream.close()

    async def _fetch(self, item: Job | RangedFile) -> None:
        if isinstance(item, RangedFile):
            await self._repair(item)
            return
        await self._semaphore.acquire(item.length)
        try:
            await self._files.write(item, await self._reader.fetch_verified(item))
        except OSError as error:
            raise self._stage.write_error(item.entry.name, error) from error
        finally:
            self._semaphore.release(item.length)

    async def _repair(self, file: RangedFile) -> None:
        entry = self._source.object_of(file.entry)

        async def fetch(start: int, length: int) -> memoryview:
            self.repaired.add(file.entry.name)
            return await self._repairer.fetch(entry, start, length)

        await file.repair(fetch)
        self._files.publish(file)

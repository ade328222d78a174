"""Carries out a prefetch plan: the lean lane where the store allows it, the store's own client for the rest.

Each file gets its name when it is whole and adds up. What the lane does not carry comes to a queue, from
which the client's workers take it; where there is no lane, they take it from the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from podferry.contract.errors import TemporaryError
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fallback_client import IN_A_THREAD, RetryingReader
from podferry.sidecar.fetch.job_queue import JobQueue
from podferry.sidecar.fetch.multirange_file import RangedFile
from podferry.sidecar.fetch.partial_file import PartialFile, WrittenRange
from podferry.sidecar.fetch.plan import FetchPlan, FileRange
from podferry.sidecar.fetch.sinks import ChunkSink, HeadJob, Job, ObjectJob, RangeJob
from podferry.sidecar.fetch.source import FetchSource, Progress
from podferry.sidecar.fetch.worker_handle import WorkerHandle, start_message, worker_count
from podferry.sidecar.fetch.worker_protocol import JobResult
from podferry.sidecar.runtime.byte_semaphore import ByteSemaphore
from podferry.sidecar.runtime.concurrency import gather_all
from podferry.sidecar.staging.file_ops import write_refused
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.checksum.checksums import Checksum
from podferry.storage.http.connection import BUFFER_BYTES
from podferry.storage.http.pool import ConnectionPool
from podferry.storage.http.response_head import UnexpectedResponse
from podferry.storage.request_builder import RequestBuilder

MAX_CONNECTIONS = 512
"""Connections: with 20 ms to the first byte they bring 25,000 objects a second, more than a process takes."""
SMALLEST = 16 * 1024
"""Bytes of a buffer that a small object touches, with its head."""


class Fetcher:
    """One run of a plan.

    Args:
        plan: What to fetch.
        source: Where from.
        stage: Where it goes; claimed.
        settings: How.
        progress: Is told what has come.
        meter: Counts.
    """

    def __init__(
        self,
        plan: FetchPlan,
        source: FetchSource,
        stage: StagingDir,
        settings: PrefetchSettings,
        progress: Progress = lambda files, count: None,
        meter: TransferCounters | None = None,
    ) -> None:
        self._plan, self._source, self._stage, self._settings = plan, source, stage, settings
        self._progress, self._meter = progress, meter or TransferCounters()
        requests = self._requests = source.store.request_builder
        states = settings.verify and requests is not None and not requests.checksum_needs_head
        self._landing = ChunkSink(stage, settings.verify, states, self._whole_landed, self._range_landed)
        self._client = RetryingReader(source.store, settings.attempts, self._meter)
        # Where there is a lane, half of the bytes in flight are its own.
        self._budget = ByteSemaphore(settings.buffer_bytes // (1 if requests is None else 2))
        self._handed: asyncio.Queue[Job | RangedFile | None] = asyncio.Queue()
        self._larges: dict[int, RangedFile] = {}
        self._sums: dict[int, Checksum] = {}
        self._jobs = self._all_jobs()

    async def run(self) -> None:
        """Fetch everything; the stage is whole on return. A failure stops everything and leaves no half file.

        What has come of large files stays aside where the same call may succeed later.

        Raises:
            Changed, NotFound, Corrupt: An object is not what was listed; it is named.
            TemporaryError: The store did not answer, after all attempts.
            Refused: The volume was full, or a file could not be written.
        """
        try:
            if self._requests is not None and self._plan.files:
                await self._lean(self._requests)
            await gather_all(self._work() for _ in range(self._settings.in_flight))
        except (TemporaryError, asyncio.CancelledError):
            raise
        except BaseException:  # whatever else it is, the next start has nothing to go on from
            self._stage.finish()
            raise
        self._stage.finish()

    async def _lean(self, requests: RequestBuilder) -> None:
        """Let lanes carry what they can, and the client's workers what they cannot."""
        if self._settings.verify and requests.checksum_needs_head:
            await self._ask_sums(requests)

        async def lanes() -> None:
            await self._carried(JobQueue(requests, self._jobs, self._hand_over))
            self._handed.put_nowait(None)

        await gather_all([lanes(), *(self._work_off() for _ in range(self._settings.in_flight))])

    def _hand_over(self, job: Any, why: UnexpectedResponse) -> None:
        self._meter.why = f"{job.entry.name}: {why}"
        self._handed.put_nowait(job)

    async def _carried(self, lots: JobQueue) -> None:
        """Everything by lanes: one here, and one in each process that helps."""
        plan = self._plan
        helping = worker_count(
            sum(plan.pieces), sum(file.size for file in plan.files), self._settings.processes
        )
        most = self._connections // (1 + helping)
        begin = start_message(lots, self._landing, most)
        processes = [WorkerHandle(begin, lots, self._meter, self._settled) for _ in range(helping)]
        await gather_all([self._lane_over(lots, most), *(self._elsewhere(process) for process in processes)])

    @property
    def _connections(self) -> int:
        """The most that half of the bytes in flight allow: the other half is the client's."""
        largest = max((file.size for file in self._plan.files), default=0)
        each = min(BUFFER_BYTES, max(largest, SMALLEST))
        return min(MAX_CONNECTIONS, max(1, self._settings.buffer_bytes // 2 // each))

    async def _lane_over(self, work: JobQueue, most: int) -> None:
        lane = ConnectionPool(work, most, self._meter)
        try:
            await lane.run()
        except OSError as error:
            name = lane.failed_job.entry.name if lane.failed_job is not None else "a file"
            raise write_refused(self._stage.root, name, error) from error

    async def _elsewhere(self, process: WorkerHandle) -> None:
        try:
            await process.run()
        except OSError as error:
            raise write_refused(self._stage.root, error.filename or "a file", error) from error

    def _settled(self, job: Job, outcome: JobResult) -> None:
        if isinstance(job, ObjectJob):
            self._whole_landed(job)
        elif outcome.came is not None:
            self._range_landed(job, outcome.came)

    async def _ask_sums(self, requests: RequestBuilder) -> None:
        """What large files must add up to: an answer with a range of it does not say."""
        large = [number for number, count in enumerate(self._plan.pieces) if count > 1]
        files = [(number, self._plan.files[number]) for number in large]
        looks = [
            HeadJob(number, self._source.object_of(file))
            for number, file in files
            if self._source.sum_of(file) is None
        ]
        if looks:
            lots = JobQueue(requests, iter(looks), lambda job, why: None)
            await self._lane_over(lots, self._connections)
        self._sums = {look.number: look.sum for look in looks if look.sum is not None}

    def _all_jobs(self) -> Iterator[Job]:
        """The plan's requests, file by file; what an earlier start wrote is left out."""
        for piece in self._plan.requests():
            file = self._plan.files[piece.file]
            if not piece.length:
                self._stage.put(piece.file, memoryview(b""), file)
                self._landed(0)
            elif self._plan.pieces[piece.file] == 1:
                entry, wanted = self._source.object_of(file), self._source.sum_of(file)
                yield ObjectJob(piece.file, entry, file, self._landing, wanted)
            else:
                large = self._large(piece)
                if large is not None and piece.start not in large.growing.came:
                    yield self._range_job(piece, large)

    def _large(self, piece: FileRange) -> RangedFile | None:
        """The file that a piece belongs to, begun with its first; None where it is whole already."""
        if piece.start == 0:
            file = self._plan.files[piece.file]
            growing = PartialFile(self._stage, file, self._plan.range_bytes)
            wanted = self._source.sum_of(file) or self._sums.get(piece.file)
            self._larges[piece.file] = RangedFile(growing, self._stage, wanted)
            if growing.whole:
                self._complete(piece.file)
        return self._larges.get(piece.file)

    def _range_job(self, piece: FileRange, large: RangedFile) -> RangeJob:
        entry = self._source.object_of(self._plan.files[piece.file])
        path = large.growing.path
        return RangeJob(piece.file, entry, piece.start, piece.length, path, large.kind, self._landing)

    # What has come.

    def _whole_landed(self, job: ObjectJob) -> None:
        self._landed(job.length)

    def _range_landed(self, job: RangeJob, came: WrittenRange) -> None:
        large = self._larges[job.number]
        if job.sum is not None:
            large.expect(job.sum)
        whole = large.came(came)
        self._progress(0, came.length)
        if whole:
            self._complete(job.number)

    def _complete(self, number: int) -> None:
        """All ranges of a file are there: it gets its name, or is looked into where it does not add up."""
        large = self._larges.pop(number)
        if large.plainly_right():
            self._admit(large)
        else:
            self._handed.put_nowait(large)

    def _admit(self, large: RangedFile) -> None:
        large.growing.admit()
        self._landed(0)

    def _landed(self, count: int) -> None:
        self._meter.files += 1
        self._progress(1, count)

    # The client's road.

    async def _work_off(self) -> None:
        """Carry what the lane hands over, until it has ended."""
        while (item := await self._handed.get()) is not None:
            await self._carry(item)
        self._handed.put_nowait(None)  # for the next worker

    async def _work(self) -> None:
        """Carry what is left of the plan."""
        for job in self._jobs:
            await self._carry(job)
        while not self._handed.empty():
            item = self._handed.get_nowait()
            if item is not None:
                await self._carry(item)

    async def _carry(self, item: Job | RangedFile) -> None:
        if isinstance(item, RangedFile):
            entry = self._source.object_of(item.entry)
            await item.settle(lambda start, length: self._client.fetch(entry, start, length))
            self._admit(item)
            return
        await self._budget.take(item.length)
        try:
            await self._keep(item, await self._client.right(item))
        except OSError as error:
            raise write_refused(self._stage.root, item.entry.name, error) from error
        finally:
            self._budget.give(item.length)

    async def _keep(self, job: Job, data: memoryview) -> None:
        """Write what has come."""
        if isinstance(job, RangeJob):
            large = self._larges[job.number]
            await asyncio.to_thread(self._stage.write, large.growing.path, data, job.start)
            self._range_landed(job, large.summed(job.start, data))
        elif len(data) < IN_A_THREAD:
            self._stage.put(job.number, data, job.file)
            self._whole_landed(job)
        else:
            path = self._stage.grow(job.number)
            await asyncio.to_thread(self._stage.write, path, data, 0)
            self._stage.admit(path, job.file)
            self._whole_landed(job)

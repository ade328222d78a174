"""The agent's end of a process that helps it with fetching."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import NoneType
from typing import Any

from podferry.sidecar.fetch import worker_prefork as standby
from podferry.sidecar.fetch.job_queue import BATCH_BYTES, BATCH_JOBS, JobQueue
from podferry.sidecar.fetch.sinks import ChunkSink, Job, ObjectJob, RangeJob
from podferry.sidecar.fetch.worker_prefork import MAX_WORKERS, cores
from podferry.sidecar.fetch.worker_protocol import (
    JobBatch,
    JobMessage,
    JobResult,
    StartMessage,
    WorkerReport,
    get,
    put,
)
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.http.response_head import UnexpectedResponse

MAX_PENDING_JOBS = 2 * BATCH_JOBS
"""Errands under way: the next lot is there before the last is done."""
MAX_PENDING_BYTES = 2 * BATCH_BYTES
"""Bytes of them, where that keeps its connections busy: what one process holds, another cannot do."""
SPARE = 4
"""Errands more than it has connections: those that it begins until it hears of more."""
JOB_SECONDS = 140e-6
"""Processor time of one request, signing and writing included. Measured in one process on a core of 2.5 GHz:
10,000 objects of 33 KB took 1.70 s, 1 GiB in ranges of 8 MiB 0.95 s."""
BYTE_SECONDS = 0.9e-9
"""Processor time of one byte, from the kernel to a buffer and from there to a file; from the same two."""
WORTH = 0.25
"""Seconds of work for which another process is begun: as long as one takes to start, measured 0.23 s."""


def worker_count(jobs: int, count: int, wished: int | None) -> int:
    """How many processes are to help.

    Args:
        jobs: Requests that there are.
        count: Their bytes.
        wished: Processes in all, None for one a core.
    """
    seconds = jobs * JOB_SECONDS + count * BYTE_SECONDS
    return max(0, min((wished or cores()) - 1, MAX_WORKERS, int(seconds / WORTH)))


class WorkerHandle:
    """One of them.

    Args:
        begin: Its task.
        lots: Where its work comes from.
        meter: Takes what it counts.
        settled: Is told each outcome that is no refusal, with its job.
    """

    def __init__(
        self,
        begin: StartMessage,
        lots: JobQueue,
        meter: TransferCounters,
        settled: Callable[[Any, JobResult], None],
    ) -> None:
        self._begin, self._lots, self._meter, self._settled = begin, lots, meter, settled
        self._jobs: dict[tuple[int, int], Job] = {}
        self._room = asyncio.Event()
        self._wanted = 0

    async def run(self) -> None:
        """Let it work until there is nothing left; where it dies, what it had is for the store's client.

        Raises:
            OSError: Bytes could not be kept.
        """
        try:
            child = standby.acquire()
        except OSError:  # no process can be had: who is there does the work
            return
        reader, writer = await asyncio.open_connection(sock=child.ours)
        feeding = asyncio.create_task(self._feed(writer))
        listening = asyncio.create_task(self._listen(reader))
        try:
            await asyncio.wait({feeding, listening}, return_when=asyncio.FIRST_COMPLETED)
            await (feeding if _failed(feeding) else listening)
        finally:
            feeding.cancel()
            listening.cancel()
            await asyncio.gather(feeding, listening, return_exceptions=True)
            writer.close()
            await child.end()
        self._give_back()

    async def _feed(self, writer: asyncio.StreamWriter) -> None:
        put(writer, self._begin)
        while jobs := await self._lots.next_batch():
            taken = [job for job in jobs if isinstance(job, ObjectJob | RangeJob)]
            self._jobs |= {(job.number, job.start): job for job in taken}
            put(writer, JobBatch([self._errand(job) for job in taken]))
            await writer.drain()
            self._room.clear()
            if self._full:
                await self._room.wait()
        put(writer, JobBatch([]))

    @property
    def _full(self) -> bool:
        busy = len(self._jobs) >= self._wanted + SPARE
        held = sum(job.length for job in self._jobs.values())
        return len(self._jobs) >= MAX_PENDING_JOBS or (busy and held >= MAX_PENDING_BYTES)

    def _errand(self, job: Job) -> JobMessage:
        request = self._lots.request(job)
        if isinstance(job, ObjectJob):
            return JobMessage(job.number, job.entry, job.file.name, 0, job.length, "", None, job.sum, request)
        path, kind = str(job.path), job.kind
        return JobMessage(job.number, job.entry, "", job.start, job.length, path, kind, None, request)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        last = False
        while not last:
            try:
                report = await get(reader, WorkerReport)
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            self._meter.add(report.meter)
            for outcome in report.outcomes:
                self._take(outcome)
            if report.failed is not None:
                raise OSError(*report.failed, report.name)
            last, self._wanted = report.last, report.wanted
            if not self._full:
                self._room.set()

    def _take(self, outcome: JobResult) -> None:
        job = self._jobs.pop((outcome.number, outcome.start))
        if outcome.sum is not None:
            job.sum = outcome.sum
        if outcome.refused:
            self._lots.fall_back(job, UnexpectedResponse(outcome.refused))
        else:
            self._settled(job, outcome)

    def _give_back(self) -> None:
        for job in self._jobs.values():
            self._lots.fall_back(job, UnexpectedResponse("the process that had it has ended"))
        self._jobs.clear()


def start_message(lots: JobQueue, landing: ChunkSink, most: int) -> StartMessage:
    """The task of a process that helps with a stage."""
    stage = landing.stage
    return StartMessage(
        lots.origin, str(stage.root), stage.file_mode, landing.verify, landing.ranges_state, most
    )


def _failed(task: asyncio.Task[None]) -> bool:
    """Whether a task has ended by an error of ours: that the process is gone, its listener tells."""
    if not task.done() or task.cancelled():
        return False
    return not isinstance(task.exception(), ConnectionError | NoneType)

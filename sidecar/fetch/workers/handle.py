"""The agent's end of a worker process."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from types import NoneType

from podferry.sidecar.fetch.bundles import BundleJob
from podferry.sidecar.fetch.job_queue import BATCH_BYTES, BATCH_JOBS, JobQueue
from podferry.sidecar.fetch.sinks import ChunkSink, Job, ObjectJob, RangeJob
from podferry.sidecar.fetch.workers import processes
from podferry.sidecar.fetch.workers.protocol import (
    BundleMessage,
    JobBatch,
    JobMessage,
    JobResult,
    StartMessage,
    WorkerReport,
    read_message,
    write_message,
)
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.http.response_head import UnexpectedResponse

MAX_PENDING_JOBS = 2 * BATCH_JOBS
"""Of one worker: the next batch arrives before the last is done."""
MAX_PENDING_BYTES = 2 * BATCH_BYTES
"""If they keep its connections busy: what one process has, no other can fetch."""
SPARE_JOBS = 4
"""More than it has connections: it starts them before the next batch arrives."""


class WorkerHandle:
    """One worker.

    Args:
        queue: The jobs.
        sink: Called as if this process had run them.
        max_connections: The worker's share.
        counters: Add up what it counts.
    """

    def __init__(
        self, queue: JobQueue, sink: ChunkSink, max_connections: int, counters: TransferCounters
    ) -> None:
        self._queue, self._sink, self._counters = queue, sink, counters
        self._max_connections = max_connections
        self._pending: dict[tuple[int, int], Job] = {}
        self._not_full = asyncio.Event()
        self._target_connections = 0

    async def run(self) -> None:
        """Run all jobs; those of a dead worker fall back. Raises `OSError` if bytes cannot be written."""
        try:
            process = processes.acquire()
        except OSError:  # no more processes: this one does the work
            return
        try:
            await self._run(process.connection)
        finally:
            await process.end()
        for job in self._pending.values():
            self._queue.fall_back(job, UnexpectedResponse("its worker process has ended"))
        self._pending.clear()

    async def _run(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        with closing(writer):
            sending = asyncio.create_task(self._send_jobs(writer))
            receiving = asyncio.create_task(self._receive_reports(reader))
            try:
                await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
                await (sending if _has_failed(sending) else receiving)
            finally:
                sending.cancel()
                receiving.cancel()
                await asyncio.gather(sending, receiving, return_exceptions=True)

    async def _send_jobs(self, writer: asyncio.StreamWriter) -> None:
        sink, stage = self._sink, self._sink.stage
        flags = sink.verify, sink.ranges_have_checksum, sink.computes
        start = (str(stage.root), stage.file_mode, *flags)
        write_message(writer, StartMessage(self._queue.origin, *start, self._max_connections, sink.holds))
        while batch := await self._queue.next_batch():
            bundles = [job for job in batch if isinstance(job, BundleJob)]
            jobs = [job for job in batch if isinstance(job, ObjectJob | RangeJob)]
            single = [*jobs, *(file for bundle in bundles for file in bundle.files)]
            self._pending |= {(job.number, job.start): job for job in single}
            messages = [self._message(job, self._queue.request(job)) for job in jobs]
            write_message(writer, JobBatch(messages, [self._bundle(bundle) for bundle in bundles]))
            await writer.drain()
            self._not_full.clear()
            if self._is_full:
                await self._not_full.wait()
        write_message(writer, JobBatch([]))

    @property
    def _is_full(self) -> bool:
        busy = len(self._pending) >= self._target_connections + SPARE_JOBS
        pending_bytes = sum(job.length for job in self._pending.values())
        return len(self._pending) >= MAX_PENDING_JOBS or (busy and pending_bytes >= MAX_PENDING_BYTES)

    def _bundle(self, bundle: BundleJob) -> BundleMessage:
        files = [self._message(job) for job in bundle.files]
        return BundleMessage(bundle.entry, files, self._queue.request(bundle))

    def _message(self, job: Job, request: bytes = b"") -> JobMessage:
        if isinstance(job, ObjectJob):
            name = job.file.name
            return JobMessage(job.number, job.entry, name, 0, job.length, "", None, job.checksum, request)
        path, kind = str(job.path), job.kind
        return JobMessage(job.number, job.entry, "", job.start, job.length, path, kind, None, request)

    async def _receive_reports(self, reader: asyncio.StreamReader) -> None:
        last = False
        while not last:
            try:
                report = await read_message(reader, WorkerReport)
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            self._counters.add(report.counters)
            for result in report.results:
                self._end_job(result)
            if report.error is not None:
                raise OSError(*report.error)
            last, self._target_connections = report.last, report.target_connections
            if not self._is_full:
                self._not_full.set()

    def _end_job(self, result: JobResult) -> None:
        job = self._pending.pop((result.number, result.start))
        if result.checksum is not None:
            job.checksum = result.checksum
        if result.refusal:
            self._queue.fall_back(job, UnexpectedResponse(result.refusal))
        elif isinstance(job, ObjectJob):
            job.content, job.held = result.content, result.held
            self._sink.on_file(job)
        elif result.written is not None:
            self._sink.on_range(job, result.written)


def _has_failed(task: asyncio.Task[None]) -> bool:
    """Whether a task has failed, other than by the end of the process, which the receiver handles."""
    if not task.done() or task.cancelled():
        return False
    return not isinstance(task.exception(), ConnectionError | NoneType)

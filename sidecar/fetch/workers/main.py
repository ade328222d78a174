"""A worker process of a prefetch: runs batches of jobs with a connection pool, on a core of its own.

`python -m podferry.sidecar.fetch.workers.main FD`, with a socket to the agent. It has no credentials:
requests arrive signed. It ends with the agent.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.bundles import BundleJob, failed_name, single_jobs
from podferry.sidecar.fetch.partial_file import WrittenRange
from podferry.sidecar.fetch.sinks import ChunkSink, ObjectJob, RangeJob
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
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.http.connection import GetJob
from podferry.storage.http.pool import ConnectionPool
from podferry.storage.http.response_head import UnexpectedResponse

REPORT_SECONDS = 0.02
"""Between reports: the agent's progress and its next batch wait for them."""


class RequestedBundle(BundleJob):
    """A bundle with its request, which has no number."""

    __slots__ = ("request",)

    def __init__(self, entry: Entry, files: Iterable[ObjectJob], request: bytes) -> None:
        super().__init__(entry, files)
        self.request = request


class RemoteJobs:
    """The jobs that the agent sends. See `podferry.storage.http.pool.JobSource`."""

    def __init__(self, start: StartMessage, reader: asyncio.StreamReader) -> None:
        self.origin, self._reader = start.origin, reader
        stage = StageWriter(Path(start.root), start.file_mode)
        self._sink = ChunkSink(
            stage,
            start.verify,
            start.ranges_have_checksum,
            self._file_done,
            self._range_done,
            start.computes,
            start.holds,
        )
        self._requests: dict[tuple[int, int], bytes] = {}
        self._reading: asyncio.Future[JobBatch] | None = None
        self.results: list[JobResult] = []

    async def next_batch(self) -> Sequence[GetJob]:
        """See `JobSource.next_batch`. The agent decides how much it sends: it knows what is left."""
        # A pool that gives up cancels this, perhaps within a frame: the next call gets the complete frame.
        self._reading = self._reading or asyncio.ensure_future(read_message(self._reader, JobBatch))
        with suppress(asyncio.IncompleteReadError):
            batch = await asyncio.shield(self._reading)
            self._reading = None
            self._requests |= {(job.number, job.start): job.request for job in batch.jobs}
            return [*map(self._job, batch.jobs), *map(self._bundle, batch.bundles)]
        return ()

    def _bundle(self, bundle: BundleMessage) -> RequestedBundle:
        return RequestedBundle(bundle.entry, map(self._object_job, bundle.files), bundle.request)

    def _object_job(self, job: JobMessage) -> ObjectJob:
        return ObjectJob(job.number, job.entry, Entry(job.file, job.entry.size), self._sink, job.checksum)

    def _job(self, job: JobMessage) -> ObjectJob | RangeJob:
        if not job.path:
            return self._object_job(job)
        return RangeJob(job.number, job.entry, job.start, job.length, Path(job.path), job.kind, self._sink)

    def request(self, job: Any) -> bytes:
        """See `JobSource.request`."""
        return job.request if isinstance(job, RequestedBundle) else self._requests[job.number, job.start]

    def fall_back(self, job: Any, reason: UnexpectedResponse) -> None:
        """See `JobSource.fall_back`."""
        for one in single_jobs(job):
            self._done(JobResult(one.number, one.start, None, one.checksum, str(reason)))

    async def refuse_rest(self, report: Callable[[], None]) -> None:
        """Return what the agent still sends: the pool has given up."""
        while jobs := await self.next_batch():
            for job in jobs:
                self.fall_back(job, UnexpectedResponse("the pool has closed"))
            report()

    def _file_done(self, job: ObjectJob) -> None:
        self._done(JobResult(job.number, 0, content=job.content, held=job.held))

    def _range_done(self, job: RangeJob, written: WrittenRange) -> None:
        self._done(JobResult(job.number, job.start, written, job.checksum))

    def _done(self, result: JobResult) -> None:
        self._requests.pop((result.number, result.start), None)  # files of a bundle have none
        self.results.append(result)


class Reports:
    """Sends the agent what is new since the last report, if anything is."""

    def __init__(
        self, jobs: RemoteJobs, pool: ConnectionPool, counters: TransferCounters, writer: asyncio.StreamWriter
    ) -> None:
        self._jobs, self._pool, self._counters, self._writer = jobs, pool, counters, writer

    def send(self, failure: OSError | None = None, *, last: bool = False) -> None:
        """One report; with the error that has ended the work, if one has."""
        results, self._jobs.results = self._jobs.results, []
        if results or last:
            name = failed_name(self._pool.failed_job)
            error = (failure.errno or 0, failure.strerror or str(failure), name) if failure else None
            counted, target = self._counters.take(), self._pool.target_connections
            write_message(self._writer, WorkerReport(results, counted, error, last, target))

    async def send_regularly(self, reader: asyncio.StreamReader, agent_pid: int) -> None:
        """Until cancelled; ends the process with the agent."""
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            if reader.at_eof() or os.getppid() != agent_pid:
                os._exit(1)  # at once: the next agent may already be writing to the stage
            self.send()


async def main(agent: socket.socket, agent_pid: int) -> None:
    """Run jobs until there are no more, or the agent has ended."""
    reader, writer = await asyncio.open_connection(sock=agent)
    start = await read_message(reader, StartMessage)
    jobs, counters = RemoteJobs(start, reader), TransferCounters()
    pool = ConnectionPool(jobs, start.max_connections, counters)
    reports = Reports(jobs, pool, counters, writer)
    reporting = asyncio.create_task(reports.send_regularly(reader, agent_pid))
    try:
        if not await pool.run():
            await jobs.refuse_rest(reports.send)
        reports.send(last=True)
    except OSError as error:
        reports.send(error, last=True)
    finally:
        reporting.cancel()
        with suppress(OSError):
            await writer.drain()
        writer.close()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(socket.socket(fileno=int(sys.argv[1])), os.getppid()))

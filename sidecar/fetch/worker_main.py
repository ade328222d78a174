"""A process that helps a prefetch: carries lots of jobs with a lane of its own, on a core of its own.

`python -m podferry.sidecar.fetch.worker_main FD`, with a socket to the agent. It holds no credentials:
requests come signed. It ends when the agent does.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.partial_file import WrittenRange
from podferry.sidecar.fetch.sinks import ChunkSink, ObjectJob, RangeJob
from podferry.sidecar.fetch.worker_protocol import (
    JobBatch,
    JobMessage,
    JobResult,
    StartMessage,
    WorkerReport,
    get,
    put,
)
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.http.connection import GetJob
from podferry.storage.http.pool import ConnectionPool
from podferry.storage.http.response_head import UnexpectedResponse
from podferry.storage.request_builder import Origin

REPORT_EVERY = 0.02
"""Seconds between reports: the agent's progress, and its next lot, wait for them."""


class RemoteJobs:
    """See `podferry.storage.http.pool.JobSource`: what the agent sends."""

    def __init__(self, begin: StartMessage, reader: asyncio.StreamReader) -> None:
        self._origin, self._reader = begin.origin, reader
        stage = StagingDir(Path(begin.root), Path(os.devnull), begin.file_mode)
        self._landing = ChunkSink(stage, begin.verify, begin.ranges_state, self._whole, self._ranged)
        self._requests: dict[tuple[int, int], bytes] = {}
        self._coming: asyncio.Future[JobBatch] | None = None
        self.outcomes: list[JobResult] = []

    @property
    def origin(self) -> Origin:
        """See `Work.origin`."""
        return self._origin

    async def next_batch(self) -> Sequence[GetJob]:
        """See `Work.lot`. As much as the agent gives: it knows what is left."""
        # A lane that gives up stops asking, perhaps in the middle of a frame: who asks next gets all of it.
        self._coming = self._coming or asyncio.ensure_future(get(self._reader, JobBatch))
        with suppress(asyncio.IncompleteReadError):
            errands = (await asyncio.shield(self._coming)).errands
            self._coming = None
            self._requests |= {(errand.number, errand.start): errand.request for errand in errands}
            return [self._job(errand) for errand in errands]
        return ()

    def _job(self, errand: JobMessage) -> ObjectJob | RangeJob:
        number, entry = errand.number, errand.entry
        if not errand.path:
            file = Entry(errand.file, entry.size)
            return ObjectJob(number, entry, file, self._landing, errand.wanted)
        path = Path(errand.path)
        return RangeJob(number, entry, errand.start, errand.length, path, errand.kind, self._landing)

    def request(self, job: GetJob) -> bytes:
        """See `Work.request`."""
        assert isinstance(job, ObjectJob | RangeJob)  # noqa: S101 - there are no others here
        return self._requests[job.number, job.start]

    def fall_back(self, job: GetJob, why: UnexpectedResponse) -> None:
        """See `Work.refused`."""
        assert isinstance(job, ObjectJob | RangeJob)  # noqa: S101 - as above
        self._done(JobResult(job.number, job.start, None, job.sum, str(why)))

    async def give_back(self, report: Callable[[], None]) -> None:
        """The lane has given up: what still comes is for the agent."""
        while jobs := await self.next_batch():
            for job in jobs:
                self.fall_back(job, UnexpectedResponse("the lane has ended"))
            report()

    def _whole(self, job: ObjectJob) -> None:
        self._done(JobResult(job.number, 0))

    def _ranged(self, job: RangeJob, came: WrittenRange) -> None:
        self._done(JobResult(job.number, job.start, came, job.sum))

    def _done(self, outcome: JobResult) -> None:
        del self._requests[outcome.number, outcome.start]
        self.outcomes.append(outcome)


async def main(end: socket.socket, parent: int) -> None:
    """Work until there is nothing more to do, or nobody to do it for.

    Args:
        end: Leads to the agent.
        parent: The agent's process.
    """
    reader, writer = await asyncio.open_connection(sock=end)
    begin = await get(reader, StartMessage)
    errands, meter = RemoteJobs(begin, reader), TransferCounters()
    lane = ConnectionPool(errands, begin.most, meter)

    def report(failure: OSError | None = None, *, last: bool = False) -> None:
        outcomes, errands.outcomes = errands.outcomes, []
        if outcomes or last:
            failed = (failure.errno or 0, failure.strerror or str(failure)) if failure else None
            name = lane.failed_job.entry.name if lane.failed_job else ""
            put(writer, WorkerReport(outcomes, meter.take(), failed, name, last, lane.target_connections))

    async def tell() -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY)
            if reader.at_eof() or os.getppid() != parent:
                os._exit(1)  # the next agent may be at work already: not another file
            report()

    telling = asyncio.create_task(tell())
    try:
        if not await lane.run():
            await errands.give_back(report)
        report(last=True)
    except OSError as error:
        report(error, last=True)
    finally:
        telling.cancel()
        with suppress(OSError):
            await writer.drain()
        writer.close()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(socket.socket(fileno=int(sys.argv[1])), os.getppid()))

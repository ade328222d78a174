"""A pool of connections that runs hundreds of plain requests from one loop, into buffers that are reused.

It sends what a `RequestBuilder` builds, accepts only plain responses (`podferry.storage.http.response_head`)
and hands everything else to the store's own client, which retries and explains. It never interprets an error.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from podferry.storage.http.buffer_pool import BufferPool
from podferry.storage.http.concurrency import ConcurrencyController, Sample
from podferry.storage.http.connection import Connection, GetJob, PoolCounters, body_bytes
from podferry.storage.http.dialer import Dialer
from podferry.storage.http.response_head import UnexpectedResponse
from podferry.storage.http.thread_cpu_time import busy_seconds
from podferry.storage.request_builder import Origin

SAMPLE_SECONDS = 0.03
"""Between two samples: several round trips to a near server."""
STALL_SECONDS = 10.0
"""Without a byte until a request falls back; half of what the engines wait."""
LOW_WATER_JOBS, LOW_WATER_BYTES = 64, 8 << 20
"""Pending jobs, and their bytes, at which the next batch is taken: some milliseconds of work. What is taken
earlier is missing in other processes."""
MAX_FAILURES = 16
"""Refused responses and failed connections in a row after which the pool gives up."""


class JobSource(Protocol):
    """The jobs of a pool."""

    @property
    def origin(self) -> Origin:
        """Where all of them are fetched from."""

    async def next_batch(self) -> Sequence[GetJob]:
        """The next jobs, their requests prepared; empty at the end."""

    def request(self, job: GetJob) -> bytes:
        """The request to send for a job."""

    def fall_back(self, job: GetJob, reason: UnexpectedResponse) -> None:
        """Leave a job to the store's own client."""


class ConnectionPool:
    """Runs jobs on the connections of one loop. See `podferry.storage.http.connection.ConnectionOwner`.

    It takes jobs in small batches as connections become free. Others may share or reset `counters` at any
    time. `failed_job` is the one whose bytes could not be written.
    """

    def __init__(self, source: JobSource, max_connections: int, counters: PoolCounters) -> None:
        self._source = source
        origin = source.origin
        self.counters = counters
        self.response_rules = origin.tag_field.encode(), origin.ranges_in_address
        self.refuses_pages = origin.pages
        self.buffers = BufferPool()
        self._concurrency = ConcurrencyController(max_connections)
        self._dialer = Dialer(source.origin, self._make_connection, self._dial_failed)
        self._pending: deque[GetJob] = deque()
        self._pending_bytes = 0
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._wake, self._low_water = asyncio.Event(), asyncio.Event()
        self._exhausted = False
        self._running = self._failures = 0
        self._bytes = self._jobs = 0
        self._error: Exception | None = None
        self.failed_job: GetJob | None = None

    async def run(self) -> bool:
        """Run until every job is complete or has fallen back.

        Returns:
            Whether the source is exhausted. Otherwise the server gives no plain responses, and the rest is
            for the store's own client.

        Raises:
            OSError: Bytes could not be written.
        """
        tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._take_batches())]
        try:
            while self._failures < MAX_FAILURES and self._error is None:
                if self._exhausted and not self._pending and not self._running:
                    break
                self._start_connections()
                await self._wake.wait()
                self._wake.clear()
        finally:
            await self._close(tasks)
        if self._error is not None:
            raise self._error
        return self._exhausted

    @property
    def target_connections(self) -> int:
        """How many connections there should be."""
        return self._concurrency.connections

    async def _take_batches(self) -> None:
        """Take the next batch before the last has run out."""
        try:
            while jobs := await self._source.next_batch():
                self._pending.extend(jobs)
                self._wake.set()
                self._low_water.clear()
                self._pending_bytes += sum(map(body_bytes, jobs))
                if not self._is_low:
                    await self._low_water.wait()
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._error = error
        self._exhausted = True
        self._wake.set()

    @property
    def _is_low(self) -> bool:
        missing = self._concurrency.connections - len(self._open)  # each is opened for a pending job
        return len(self._pending) < missing or (
            len(self._pending) <= LOW_WATER_JOBS and self._pending_bytes <= LOW_WATER_BYTES
        )

    def _start_connections(self) -> None:
        """Start jobs on idle connections, and open more up to the target, one for each pending job."""
        while self._idle and self._pending:
            self._idle.pop().start_next()
        target = min(self._concurrency.connections, len(self._open) + len(self._pending))
        for _ in range(target - len(self._open) - len(self._dialer.tasks)):
            self._dialer.start()

    def _make_connection(self) -> Connection:
        return Connection(self, asyncio.get_running_loop())

    def _dial_failed(self) -> None:
        self._failures += 1

    async def _watch(self) -> None:
        """Adapt the number of connections, and abort those that stall."""
        before, reads, checked_at = self._progress(), dict[Connection, int](), 0.0
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            now = self._progress()
            self._concurrency.update(now - before)
            before = now
            if self._is_low:  # the target may have grown
                self._low_water.set()
            if now.seconds - checked_at > STALL_SECONDS:
                for connection in [one for one, count in reads.items() if one.reads == count]:
                    connection.abort_stalled()
                reads, checked_at = {one: one.reads for one in self._open if one.job}, now.seconds
            self._wake.set()

    def _progress(self) -> Sample:
        return Sample(time.monotonic(), busy_seconds(), self._bytes, self._jobs)

    async def _close(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Close everything; incomplete jobs fall back, unless there is an error."""
        closing = [*tasks, *self._dialer.tasks]
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
        incomplete = list(self._pending)
        self._pending.clear()
        for connection in tuple(self._open):
            if connection.job is not None:
                incomplete.append(connection.job)
                connection.job = None
            connection.abort()
        for job in incomplete if self._error is None else ():
            self._hand_over(job, UnexpectedResponse("the pool has closed"))

    def _hand_over(self, job: GetJob, reason: UnexpectedResponse) -> None:
        self.counters.handed_over += 1
        self._source.fall_back(job, reason)

    # Called by connections.

    def opened(self, connection: Connection) -> None:
        """See `ConnectionOwner.opened`."""
        self._open.add(connection)
        self.counters.connections += 1

    def next_request(self, connection: Connection) -> tuple[GetJob, bytes] | None:
        """See `ConnectionOwner.next_request`. A connection beyond the target is closed."""
        if len(self._open) > self._concurrency.connections:
            connection.abort()
        elif self._pending:
            self._running += 1
            job = self._pending.popleft()
            self._pending_bytes -= body_bytes(job)
            if self._is_low:
                self._low_water.set()
            return job, self._source.request(job)
        else:
            self._idle.append(connection)
            self._wake.set()
        return None

    def received(self, count: int) -> None:
        """See `ConnectionOwner.received`."""
        self.counters.bytes += count
        self._bytes += count

    def completed(self) -> None:
        """See `ConnectionOwner.completed`."""
        self._running -= 1
        self._failures = 0
        self.counters.jobs += 1
        self._jobs += 1

    def fall_back(self, job: GetJob, reason: UnexpectedResponse) -> None:
        """See `ConnectionOwner.fall_back`."""
        self._running -= 1
        self._failures += 1
        if reason.rate_limited:
            self._concurrency.slow_down()
        self._hand_over(job, reason)
        self._wake.set()

    def failed(self, job: GetJob | None, error: Exception) -> None:
        """See `ConnectionOwner.failed`."""
        self._running -= 1
        if self._error is None:
            self._error, self.failed_job = error, job
        self._wake.set()

    def closed(self, connection: Connection, job: GetJob | None, *, unanswered: bool) -> None:
        """See `ConnectionOwner.closed`. A server may close an idle connection: its job is sent again."""
        self._open.discard(connection)
        self.counters.connections -= 1
        if connection in self._idle:
            self._idle.remove(connection)
        if job is not None and unanswered:
            self._running -= 1
            self._failures += 1
            self._pending.append(job)
            self._pending_bytes += body_bytes(job)
        elif job is not None:
            self.fall_back(job, UnexpectedResponse("the connection closed within the response"))
        self._wake.set()

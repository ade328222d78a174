"""The lean lane: hundreds of plain requests from one loop, into buffers that are reused.

It carries what a store's `Requests` can ask for, takes only plain answers
(`podferry.storage.http.response_head`),
and hands everything else back: to the store's own client, which retries and explains. It never tries to be
clever about an error.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from podferry.storage.http.concurrency import ConcurrencyController, Sample
from podferry.storage.http.connection import Connection, GetJob, PoolCounters, body_of
from podferry.storage.http.dialer import Dialer
from podferry.storage.http.response_head import UnexpectedResponse
from podferry.storage.request_builder import Origin

TICK = 0.03
"""Seconds between two looks at the pace: several round trips of a near server."""
STALL = 10.0
"""Seconds without a byte after which a request is somebody else's; half of what the engines wait."""
ENOUGH, ENOUGH_BYTES = 64, 8 << 20
"""Jobs that are left, and their bytes, when the next lot is asked for: some milliseconds of work. More would
be missing elsewhere."""
IN_VAIN = 16
"""Answers in a row that were not plain, and connections that failed, after which the lane gives up."""
REDIAL = 0.5
"""Seconds that a connection which could not be opened keeps its place."""


SCHEDULED = Path("/proc/thread-self/schedstat")


class JobSource(Protocol):
    """What a lane carries.

    Attributes:
        origin: Where it is fetched from.
    """

    @property
    def origin(self) -> Origin:
        """Where all of it is fetched from."""

    async def lot(self) -> Sequence[GetJob]:
        """The next jobs, their requests ready; none at the end.

        Raises:
            OSError: Bytes could not be kept.
        """

    def request(self, job: GetJob) -> bytes:
        """What is sent for a job."""

    def refused(self, job: GetJob, why: UnexpectedResponse) -> None:
        """A job is for the store's own client."""


class ConnectionPool:
    """One loop's share of the work.

    Args:
        work: What to carry; taken in small lots, as connections become free.
        most: Connections at once.
        meter: Counts.

    Attributes:
        meter, tag_field: See `podferry.storage.http.connection.ConnectionOwner`.
        failed: The job whose bytes could not be kept.
    """

    def __init__(self, work: JobSource, most: int, meter: PoolCounters) -> None:
        self._work = work
        self.meter, self.tag_field = meter, work.origin.tag_field.encode()
        self._pace, self._dialler = ConcurrencyController(most), Dialer(work.origin)
        self._ready: deque[GetJob] = deque()
        self._left = 0
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._dials: set[asyncio.Task[None]] = set()
        self._wake, self._hungry = asyncio.Event(), asyncio.Event()
        self._dry = False
        self._under_way = self._in_vain = 0
        self._bytes = self._jobs = 0  # this lane's own: its meter may count others, too, or begin anew
        self._failure: Exception | None = None
        self.failed: GetJob | None = None

    async def run(self) -> bool:
        """Carry the work; whether all of it was taken, by this lane or by whom it hands over to.

        Where it is false the server gives no plain answers: what is left is for the store's client.

        Raises:
            OSError: Bytes could not be kept.
        """
        tasks = [asyncio.create_task(self._look()), asyncio.create_task(self._feed())]
        try:
            while self._in_vain < IN_VAIN and self._failure is None:
                if self._dry and not self._ready and not self._under_way:
                    break
                self._staff()
                await self._wake.wait()
                self._wake.clear()
        finally:
            await self._end(tasks)
        if self._failure is not None:
            raise self._failure
        return self._dry

    async def _feed(self) -> None:
        """Take the next jobs before the last are gone."""
        try:
            while jobs := await self._work.lot():
                self._ready.extend(jobs)
                self._wake.set()
                self._hungry.clear()
                self._left += sum(map(body_of, jobs))
                if not self._is_hungry:
                    await self._hungry.wait()
        except Exception as error:  # noqa: BLE001 - a task's own would be seen by nobody
            self._failure = error
        self._dry = True
        self._wake.set()

    @property
    def _is_hungry(self) -> bool:
        lacking = self._pace.connections - len(self._open)  # each is opened for a job that waits
        return len(self._ready) < lacking or (len(self._ready) <= ENOUGH and self._left <= ENOUGH_BYTES)

    @property
    def wanted(self) -> int:
        """How many connections there should be."""
        return self._pace.connections

    def _staff(self) -> None:
        """Put idle connections to work, and open as many as the pace and the work ask for."""
        while self._idle and self._ready:
            self._idle.pop().pull()
        wanted = min(self._pace.connections, len(self._open) + len(self._ready))
        for _ in range(wanted - len(self._open) - len(self._dials)):
            dial = asyncio.create_task(self._dial())
            self._dials.add(dial)
            dial.add_done_callback(self._dials.discard)

    async def _dial(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._dialler.dial(lambda: Connection(self, loop))
        except OSError:  # TimeoutError is one, and so is what is wrong with a certificate
            self._in_vain += 1
            await asyncio.sleep(REDIAL)
        finally:
            self._wake.set()

    async def _look(self) -> None:
        """Watch pace and stalls."""
        before, moved, since = self._seen(), dict[Connection, int](), 0.0
        while True:
            await asyncio.sleep(TICK)
            now = self._seen()
            seen = [after - earlier for after, earlier in zip(now, before, strict=True)]
            self._pace.look(Sample(seen[0], seen[1], int(seen[2]), int(seen[3])))
            before = now
            if self._is_hungry:  # for there may be more connections now
                self._hungry.set()
            if now[0] - since > STALL:
                for connection in [one for one, count in moved.items() if one.moved == count]:
                    connection.stalled()
                moved, since = {one: one.moved for one in self._open if one.job}, now[0]
            self._wake.set()

    def _seen(self) -> tuple[float, float, int, int]:
        return time.monotonic(), time.thread_time() + _waited(), self._bytes, self._jobs

    async def _end(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Close everything; what was taken and not carried is handed over, unless there is a failure."""
        closing = [*tasks, *self._dials]
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
        left = list(self._ready)
        self._ready.clear()
        for connection in tuple(self._open):
            if connection.job is not None:
                left.append(connection.job)
                connection.job = None
            connection.abort()
        for job in left if self._failure is None else ():
            self._give(job, UnexpectedResponse("the lane has ended"))

    def _give(self, job: GetJob, why: UnexpectedResponse) -> None:
        self.meter.handed_over += 1
        self._work.refused(job, why)

    # What connections call: see `podferry.storage.http.connection.ConnectionOwner`.

    def opened(self, connection: Connection) -> None:
        """See `Driver.opened`."""
        self._open.add(connection)
        self.meter.connections += 1

    def next(self, connection: Connection) -> tuple[GetJob, bytes] | None:
        """See `Driver.next`. One connection too many is closed, one without work is kept."""
        if len(self._open) > self._pace.connections:
            connection.abort()
        elif self._ready:
            self._under_way += 1
            job = self._ready.popleft()
            self._left -= body_of(job)
            if self._is_hungry:
                self._hungry.set()
            return job, self._work.request(job)
        else:
            self._idle.append(connection)
            self._wake.set()
        return None

    def came(self, count: int) -> None:
        """See `Driver.came`."""
        self.meter.bytes += count
        self._bytes += count

    def finished(self) -> None:
        """See `Driver.finished`."""
        self._under_way -= 1
        self._in_vain = 0
        self.meter.jobs += 1
        self._jobs += 1

    def refused(self, job: GetJob, why: UnexpectedResponse) -> None:
        """See `Driver.refused`."""
        self._under_way -= 1
        self._in_vain += 1
        if why.slow:
            self._pace.slow_down()
        self._give(job, why)
        self._wake.set()

    def broken(self, job: GetJob | None, error: Exception) -> None:
        """See `Driver.broken`."""
        self._under_way -= 1
        if self._failure is None:
            self._failure, self.failed = error, job
        self._wake.set()

    def lost(self, connection: Connection, job: GetJob | None, *, fresh: bool) -> None:
        """See `Driver.lost`. A server may close a connection that was idle: its job is sent once more."""
        self._open.discard(connection)
        self.meter.connections -= 1
        if connection in self._idle:
            self._idle.remove(connection)
        if job is not None and fresh:
            self._under_way -= 1
            self._in_vain += 1
            self._ready.append(job)
            self._left += body_of(job)
        elif job is not None:
            self.refused(job, UnexpectedResponse("the connection ended within the answer"))
        self._wake.set()


def _waited() -> float:
    """Seconds that this thread was ready to run and had no processor; 0 where the system does not tell."""
    try:
        # Each line: nanoseconds run, nanoseconds waited, time slices. Source: Linux, scheduler/sched-stats.
        return int(SCHEDULED.read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0

"""One keep-alive connection of the lean lane: a request out, its answer into a buffer, and on.

The buffer belongs to the connection and is reused, so nothing is allocated for a body. What does not fit
is given on in pieces while it comes. No task and no future stands behind a request: that is where the time
of general clients goes.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from podferry.contract.manifest import Entry
from podferry.storage.http.response_head import ResponseHead, UnexpectedResponse, read_head

BUFFER_BYTES = 256 * 1024
"""Bytes of a connection's buffer: a small object with its head, or one piece of a large one, which stays in
the processor's cache between the network and the file."""
TURN = 4 * BUFFER_BYTES
"""Bytes of one object that are read before it is the turn of others: else the loop comes round ten times a
second, and processes that help wait for their work."""


class GetJob(Protocol):
    """A range of an object, and where its bytes go.

    Attributes:
        entry: The object.
        start, length: The range, bytes; at least one.
        bodiless: Only the head is asked for, that of the whole object.
    """

    entry: Entry
    start: int
    length: int
    bodiless: bool

    def begin(self, head: ResponseHead) -> None:
        """The answer begins."""

    def take(self, data: memoryview, offset: int) -> None:
        """Bytes of the range, `offset` from its start, in order. The buffer is used again afterwards.

        Raises:
            UnexpectedResponse: With these the range is complete, and is not what the head says of it.
            OSError: They cannot be kept.
        """


def body_of(job: GetJob) -> int:
    """Bytes that an answer to a job brings."""
    return 0 if job.bodiless else job.length


class PoolCounters(Protocol):
    """What a lane counts; plain numbers, since it bumps them for each object.

    Attributes:
        jobs, bytes: That it has carried, counted by whoever drives the connections.
        discarded: Bytes of what it could not carry to the end.
        handed_over: Jobs that it gave back.
        connections: That are open.
    """

    jobs: int
    bytes: int
    discarded: int
    handed_over: int
    connections: int

    def first_byte(self, seconds: float) -> None:
        """An answer has begun, so long after it was asked for."""


class ConnectionOwner(Protocol):
    """Who has the connections."""

    meter: PoolCounters
    tag_field: bytes

    def opened(self, connection: Connection) -> None:
        """A connection is there, and idle."""

    def next(self, connection: Connection) -> tuple[GetJob, bytes] | None:
        """The next job with its request; None where there is none now: then it is called again, or closed."""

    def came(self, count: int) -> None:
        """So many bytes of bodies have come."""

    def finished(self) -> None:
        """A job is done."""

    def refused(self, job: GetJob, why: UnexpectedResponse) -> None:
        """A job is for somebody else; its connection is closed."""

    def broken(self, job: GetJob | None, error: Exception) -> None:
        """A job's bytes cannot be kept, or it could not be sent; its connection is closed."""

    def lost(self, connection: Connection, job: GetJob | None, *, fresh: bool) -> None:
        """The connection has ended; `fresh` says that nothing of an answer to the job had come."""


class Connection(asyncio.BufferedProtocol):
    """Carries one job after another.

    Attributes:
        moved: Grows whenever bytes come: a look that finds it unchanged finds a stall.
        job: What is under way.
    """

    def __init__(self, driver: ConnectionOwner, loop: asyncio.AbstractEventLoop) -> None:
        self._driver, self._now, self._soon = driver, loop.time, loop.call_soon
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._transport: asyncio.Transport | None = None
        self._head: ResponseHead | None = None
        self._filled = self._taken = 0
        self._sent_at = 0.0
        self.job: GetJob | None = None
        self.moved = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class, with the same methods
        self._driver.opened(self)
        try:
            self.pull()
        except Exception as error:  # noqa: BLE001 - as in `buffer_updated`
            self._driver.broken(self._drop(), error)

    def pull(self) -> None:
        """Begin the next job, where there is one."""
        found = self._driver.next(self)
        if found is None:
            return
        assert self._transport is not None  # noqa: S101 - nobody pulls before there is a transport
        self.job, request = found
        self._head, self._filled, self._taken = None, 0, 0
        self._sent_at = self._now()
        self._transport.write(request)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See `asyncio.BufferedProtocol`. Never empty: a full buffer has been given on."""
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """See `asyncio.BufferedProtocol`."""
        self.moved += 1
        self._filled += nbytes
        job = self.job
        if job is None:  # bytes that nobody asked for
            self.abort()
            return
        try:
            head = self._head or self._begin(job)
            if head is not None:
                self._go_on(job, head)
        except UnexpectedResponse as why:
            self._drop()
            self._driver.refused(job, why)
        except Exception as error:  # noqa: BLE001 - the loop would only log it, and go on
            self._drop()
            self._driver.broken(job, error)

    def _begin(self, job: GetJob) -> ResponseHead | None:
        """Read the head, once all of it is there."""
        if self._filled and self._sent_at:
            self._driver.meter.first_byte(self._now() - self._sent_at)
            self._sent_at = 0.0
        head = read_head(self._buffer, self._filled, job.entry, job.start, job.length, self._driver.tag_field)
        if head is not None:
            self._head = head
            job.begin(head)
        return head

    def _go_on(self, job: GetJob, head: ResponseHead) -> None:
        """Give on what has come: all of a small body at once, a large one whenever the buffer is full."""
        first = 0 if self._taken else head.body
        have = self._filled - first
        left = body_of(job) - self._taken
        if have > left:
            raise UnexpectedResponse(f"{have - left} bytes more than were asked for")
        if have < left and self._filled < BUFFER_BYTES:
            return
        if have:
            job.take(self._view[first : self._filled], self._taken)
            self._driver.came(have)
        self._taken += have
        self._filled = 0
        if have == left:
            self._finish(head)
        elif self._taken % TURN < have:
            self._let_others()

    def _let_others(self) -> None:
        """Read on after the others of this loop: libuv reads up to 32 times in a row."""
        if self._transport is not None:
            self._transport.pause_reading()
            self._soon(self._read_on)

    def _read_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _finish(self, head: ResponseHead) -> None:
        self.job = None
        self._driver.finished()
        if head.last:
            self.abort()
        else:
            self.pull()

    def stalled(self) -> None:
        """Nothing has come for too long."""
        job = self._drop()
        if job is not None:
            self._driver.refused(job, UnexpectedResponse("nothing came for too long"))

    def _drop(self) -> GetJob | None:
        """Close at once; the job that was under way."""
        job, self.job = self.job, None
        if job is not None:
            self._driver.meter.discarded += self._taken
        self.abort()
        return job

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""
        job = self._drop()
        self._driver.lost(self, job, fresh=not self._filled and self._head is None)

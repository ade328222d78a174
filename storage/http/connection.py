"""One keep-alive connection of the pool: sends a request, receives the response into a buffer, and repeats.

An open connection has a buffer of its own, which the next one takes over: nothing is allocated for a body.
One that does not fit is passed on in chunks as it arrives. There is no task and no future per request,
where general clients spend their time.
"""

from __future__ import annotations

import asyncio
import time
from mmap import mmap
from typing import Protocol, cast

from podferry.contract.manifest import Entry
from podferry.storage.http.buffer_pool import BUFFER_BYTES, BufferPool
from podferry.storage.http.page_detection import may_be_page
from podferry.storage.http.response_head import ResponseHead, UnexpectedResponse, read_head

FAIR_SHARE_BYTES = 4 * BUFFER_BYTES
"""Bytes of one object that are read before other connections get a turn: otherwise the loop comes round ten
times a second, and worker processes wait for their jobs."""


class GetJob(Protocol):
    """A range of an object, and where its bytes go.

    Calls: 1. `receive_head`, 2. `receive_body` until the range is complete. A retry starts with 1.

    Attributes:
        entry: The object.
        start, length: The range, bytes; at least one.
        head_only: Whether to request the head of the complete object instead.
        sent_at: When its request was sent, by `time.monotonic`; set by the connection.
    """

    entry: Entry
    start: int
    length: int
    head_only: bool
    sent_at: float

    def receive_head(self, head: ResponseHead) -> None:
        """A response starts."""

    def receive_body(self, data: memoryview, offset: int) -> None:
        """Write bytes of the range, `offset` from its start, in order. The buffer is reused afterwards.

        Raises:
            UnexpectedResponse: The range is complete and does not match its checksum.
            OSError: The bytes cannot be written.
        """


def body_bytes(job: GetJob) -> int:
    """Length of the response body."""
    return 0 if job.head_only else job.length


class PoolCounters(Protocol):
    """What a pool counts; plain numbers, because it increments them for each object.

    Attributes:
        jobs, bytes: Completed jobs and received bytes, counted by the owner of the connections.
        discarded: Bytes of responses that did not complete.
        handed_over: Jobs that fell back to the store's own client.
        connections: Open ones.
    """

    jobs: int
    bytes: int
    discarded: int
    handed_over: int
    connections: int

    def first_byte(self, seconds: float) -> None:
        """A response started, this long after its request."""


class ConnectionOwner(Protocol):
    """Schedules jobs on connections."""

    counters: PoolCounters
    response_rules: tuple[bytes, bool]
    """The last two arguments of `read_head`."""
    refuses_pages: bool
    buffers: BufferPool

    def opened(self, connection: Connection) -> None:
        """A connection is open and idle."""

    def next_request(self, connection: Connection) -> tuple[GetJob, bytes] | None:
        """The next job and its request. None: call `Connection.start_next` later, or it has been closed."""

    def received(self, count: int) -> None:
        """`count` bytes of bodies were received."""

    def completed(self) -> None:
        """A job is complete."""

    def fall_back(self, job: GetJob, reason: UnexpectedResponse) -> None:
        """A job is for the store's own client; its connection is closed."""

    def failed(self, job: GetJob | None, error: Exception) -> None:
        """A job's bytes cannot be written, or it could not be sent; its connection is closed."""

    def closed(self, connection: Connection, job: GetJob | None, *, unanswered: bool) -> None:
        """The connection has closed; `unanswered`: before the response to `job` started."""


class Connection(asyncio.BufferedProtocol):
    """Runs one `job` after another. If `reads` is the same at two checks, the connection has stalled."""

    def __init__(self, owner: ConnectionOwner, loop: asyncio.AbstractEventLoop) -> None:
        self._owner, self._now, self._call_soon = owner, loop.time, loop.call_soon
        self._buffer: mmap
        self._view: memoryview
        self._transport: asyncio.Transport
        self._head: ResponseHead | None = None
        self._filled = self._written = 0
        self._sent_at = 0.0
        self.job: GetJob | None = None
        self.reads = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class, with the same methods
        self._buffer = self._owner.buffers.acquire()
        self._view = memoryview(self._buffer)
        self._owner.opened(self)
        try:
            self.start_next()
        except Exception as error:  # noqa: BLE001 - as in `buffer_updated`
            self._owner.failed(self._close(), error)

    def start_next(self) -> None:
        """Send the next request, if there is one."""
        found = self._owner.next_request(self)
        if found is None:
            return
        self.job, request = found
        self._head, self._filled, self._written = None, 0, 0
        self._sent_at, self.job.sent_at = self._now(), time.monotonic()
        self._transport.write(request)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See `asyncio.BufferedProtocol`. Never empty: a full buffer has been passed on."""
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """See `asyncio.BufferedProtocol`."""
        self.reads += 1
        self._filled += nbytes
        job = self.job
        if job is None:  # bytes without a request
            self.abort()
            return
        try:
            head = self._head or self._read_head(job)
            if head is not None:
                self._pass_on(job, head)
        except UnexpectedResponse as reason:
            self._close()
            self._owner.fall_back(job, reason)
        except Exception as error:  # noqa: BLE001 - the loop would only log it and continue
            self._close()
            self._owner.failed(job, error)

    def _read_head(self, job: GetJob) -> ResponseHead | None:
        if self._filled and self._sent_at:
            self._owner.counters.first_byte(self._now() - self._sent_at)
            self._sent_at = 0.0
        request = job.entry, job.start, job.length
        head = read_head(self._buffer, self._filled, *request, *self._owner.response_rules)
        if head is not None:
            self._head = head
            job.receive_head(head)
        return head

    def _pass_on(self, job: GetJob, head: ResponseHead) -> None:
        """Pass on the body: a small one at once, a large one whenever the buffer is full."""
        first = 0 if self._written else head.body_offset
        available = self._filled - first
        missing = body_bytes(job) - self._written
        if available > missing:
            raise UnexpectedResponse(f"{available - missing} bytes more than were requested")
        if available < missing and self._filled < BUFFER_BYTES:
            return
        if self._owner.refuses_pages and available and not self._written:
            self._refuse_page(job, head, first)
        if available:
            job.receive_body(self._view[first : self._filled], self._written)
            self._owner.received(available)
        self._written += available
        self._filled = 0
        if available == missing:
            self._complete(head)
        elif self._written % FAIR_SHARE_BYTES < available:
            self._yield_turn()

    def _refuse_page(self, job: GetJob, head: ResponseHead, first: int) -> None:
        """Leave what may be a page in the place of a file to the store's own client, which looks closer."""
        if may_be_page(job.entry.name, job.start, head.raw, self._view[first : self._filled]):
            raise UnexpectedResponse("what may be a web page instead of the file")

    def _yield_turn(self) -> None:
        """Read on after the other connections of this loop: libuv reads up to 32 times in a row."""
        self._transport.pause_reading()
        self._call_soon(self._resume_reading)

    def _resume_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _complete(self, head: ResponseHead) -> None:
        self.job = None
        self._owner.completed()
        if head.closes:
            self.abort()
        else:
            self.start_next()

    def abort_stalled(self) -> None:
        """Close, because nothing has been received for too long."""
        job = self._close()
        if job is not None:
            self._owner.fall_back(job, UnexpectedResponse("nothing was received for too long"))

    def _close(self) -> GetJob | None:
        """Close at once and return the current job."""
        job, self.job = self.job, None
        if job is not None:
            self._owner.counters.discarded += self._written
        self.abort()
        return job

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""
        job = self._close()
        self._view.release()  # the loop reads into it no more
        self._owner.buffers.release(self._buffer)
        self._owner.closed(self, job, unanswered=not self._filled and self._head is None)

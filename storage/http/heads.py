"""Asks for the size and the tag of many files of a web server: an index page has neither.

A listing of 1,000 files takes 1,000 requests, which cost more in a general client than the files themselves.
Only plain responses count here; whatever is not plain is left to the store's own client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self, cast

from podferry.contract.manifest import Entry
from podferry.storage.http.dialer import Dialer
from podferry.storage.http.page_detection import is_html
from podferry.storage.http.response_head import HEAD_END, MAX_HEAD_BYTES, UnexpectedResponse, parse_fields
from podferry.storage.request_builder import RequestBuilder

OK = b"HTTP/1.1 200"
MAX_DIGITS = 18
"""Of a size: below 2⁶⁰ bytes."""


MAX_REFUSED = 16
"""Responses in a row that are not plain until no more are requested: all files may be pages, or elsewhere."""


class HeadRequests:
    """Sends HEAD requests on a few connections that stay open for the block; for the files of one server."""

    def __init__(self, builder: RequestBuilder, connections: int, seconds: float) -> None:
        """Prepare.

        Args:
            builder: Of the store.
            connections: At most.
            seconds: For one response.
        """
        self._builder, self._seconds = builder, seconds
        self._free = asyncio.Semaphore(connections)
        self._idle: list[HeadConnection] = []
        self._refused = 0
        self._new: list[HeadConnection] = []
        self._dialer = Dialer(builder.origin, lambda: HeadConnection(self._new.append), lambda: None)

    async def __aenter__(self) -> Self:
        await self._builder.prepare(())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._idle:
            connection.close()

    async def entry(self, name: str) -> Entry | None:
        """The entry of a file, or None if the response is not plain: perhaps it is a page, or a directory.

        Raises:
            TimeoutError: The server does not respond in time.
        """
        request = self._builder.build(Entry(name, 1), 0, 1, "HEAD")
        async with self._free:
            head = await self._respond(request) if self._refused < MAX_REFUSED else None
        found = _entry(name, head) if head is not None else None
        self._refused = 0 if found is not None else self._refused + 1
        return found

    async def _respond(self, request: bytes) -> bytes | None:
        """The head of a response; None if there is none."""
        connection = self._idle.pop() if self._idle else None
        if connection is None or not connection.is_open:  # a server may close an idle connection
            connection = await self._connected()
        if connection is None:
            return None
        try:
            async with asyncio.timeout(self._seconds):
                head = await connection.request(request)
        except BaseException:
            connection.close()
            raise
        if connection.is_open:
            self._idle.append(connection)
        return head

    async def _connected(self) -> HeadConnection | None:
        try:
            await self._dialer.dial()
        except OSError:  # the store's own client says why
            return None
        return self._new.pop()


class HeadConnection(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self, on_open: Callable[[HeadConnection], None]) -> None:
        self._on_open = on_open
        self._received = bytearray()
        self._waiter: asyncio.Future[bytes | None] | None = None
        self._transport: asyncio.Transport

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._on_open(self)

    async def request(self, data: bytes) -> bytes | None:
        """The head of the response to a request, without its empty line; None if the connection breaks."""
        self._received.clear()
        if not self.is_open:
            return None
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return await self._waiter

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`. A response to HEAD has no body: more bytes make the connection unusable."""
        self._received += data
        end = self._received.find(HEAD_END)
        if 0 <= end < len(self._received) - len(HEAD_END) or len(self._received) > MAX_HEAD_BYTES:
            self._end(None)
        elif end >= 0:
            head = bytes(self._received[:end])
            self._end(head, keep=b"\r\nconnection: close" not in head.lower())

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""
        self._end(None)

    def _end(self, head: bytes | None, *, keep: bool = False) -> None:
        waiter, self._waiter = self._waiter, None
        if not keep or waiter is None:
            self._transport.abort()
        if waiter is not None and not waiter.done():
            waiter.set_result(head)

    def close(self) -> None:
        """Close at once."""
        self._transport.abort()


def _entry(name: str, head: bytes) -> Entry | None:
    """The entry of a file by the head of a response, without the empty line at its end."""
    try:
        fields = parse_fields(head, b"etag")
    except UnexpectedResponse:
        return None
    size = fields.get(b"content-length", b"").rstrip()
    if head[: len(OK)] != OK or not size.isdigit() or len(size) > MAX_DIGITS or not int(size):
        return None
    if is_html(fields.get(b"content-type", b"").decode("latin-1")):
        return None
    return Entry(name, int(size), fields.get(b"etag", b"").rstrip().decode("latin-1"))

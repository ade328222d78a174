"""Asks for the size and the tag of many files of a web server: an index page has neither.

A listing of 1,000 files takes 1,000 requests, which cost more in a general client than the files themselves.
Many are on their way at a time (RFC 9112, section 9.3.2). Only plain responses count here; whatever is not
plain is left to the store's own client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, cast

from podferry.contract.manifest import Entry
from podferry.storage.http.dialer import Dialer
from podferry.storage.http.last_modified import tag_of
from podferry.storage.http.page_detection import is_html
from podferry.storage.http.response_head import HEAD_END, MAX_HEAD_BYTES, UnexpectedResponse, parse_fields
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.request_builder import RequestBuilder

OK, FINAL = b"HTTP/1.1 200", tuple(b"HTTP/1.1 %d" % hundreds for hundreds in (2, 3, 4, 5))
PIPELINED = 32
"""Requests that wait at the server at a time: some kilobytes, which its socket's buffer holds."""
TAG_FIELDS = (b"etag", b"last-modified", b"date")
MAX_DIGITS = 18
"""Of a size: below 2⁶⁰ bytes."""


MAX_REFUSED = 16
"""Responses in a row that are not plain until no more are requested: all files may be pages, or elsewhere."""


class HeadRequests:
    """Sends HEAD requests on a few connections that stay open for the block; for the files of one server."""

    def __init__(
        self, builder: RequestBuilder, connections: int, seconds: float, *, pages: bool = False
    ) -> None:
        """Prepare.

        Args:
            builder: Of the store.
            connections: At most.
            seconds: For one response.
            pages: Whether a web page is a file, too: where it is known that each name is one.
        """
        self._builder, self._seconds, self._pages = builder, seconds, pages
        self._connections, self._free = connections, asyncio.Semaphore(connections)
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
        return (await self._found([name]) or [None])[0]

    async def entries(self, names: Sequence[str]) -> list[Entry]:
        """The entries of those files whose responses are plain.

        Raises:
            TimeoutError: The server does not respond in time.
        """
        found: list[Entry | None] = []

        async def ask(batch: Sequence[str]) -> None:
            """Ask until there is no response to the next request."""
            while batch and (more := await self._found(batch)):
                found.extend(more)
                batch = batch[len(more) :]

        batches = [names[start : start + PIPELINED] for start in range(0, len(names), PIPELINED)]
        await for_each_limited(batches, ask, self._connections)
        return [entry for entry in found if entry is not None]

    async def _found(self, names: Sequence[str]) -> list[Entry | None]:
        """The entries of the first names, None for a response that is not plain; none if nothing responds."""
        async with self._free:
            heads = await self._respond(names) if self._refused < MAX_REFUSED else []
        found = [_entry(name, head, self._pages) for name, head in zip(names, heads, strict=False)]
        for entry in found or [None]:
            self._refused = 0 if entry is not None else self._refused + 1
        return found

    async def _respond(self, names: Sequence[str]) -> list[bytes]:
        """The heads of the first responses: at least one, unless there is none.

        Of a new connection one: the server has not shown yet that it stays open.
        """
        connection = self._idle.pop() if self._idle else None
        if connection is None or not connection.is_open:  # a server may close an idle connection
            connection, names = await self._connected(), names[:1]
        if connection is None:
            return []
        requests = [self._builder.build(Entry(name, 1), 0, 1, "HEAD") for name in names]
        try:
            async with asyncio.timeout(self._seconds):
                heads = await connection.request(requests)
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError) and connection.heads:
                return connection.heads
            raise
        if connection.is_open:
            self._idle.append(connection)
        return heads

    async def _connected(self) -> HeadConnection | None:
        try:
            await self._dialer.dial()
        except OSError:  # the store's own client says why
            return None
        return self._new.pop()


class HeadConnection(asyncio.Protocol):
    """One connection.

    Attributes:
        heads: Of the responses to the last requests, without their empty lines.
    """

    def __init__(self, on_open: Callable[[HeadConnection], None]) -> None:
        self._on_open = on_open
        self._received = bytearray()
        self._waiter: asyncio.Future[list[bytes]] | None = None
        self._count = 0
        self.heads: list[bytes] = []
        self._transport: asyncio.Transport

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._on_open(self)

    async def request(self, requests: Sequence[bytes]) -> list[bytes]:
        """The heads of the responses, in order; fewer than requests if the connection breaks."""
        self._received.clear()
        self.heads, self._count = [], len(requests)
        if not self.is_open:
            return []
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(b"".join(requests))
        return await self._waiter

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`. A response to HEAD has no body: more bytes make the connection unusable."""
        self._received += data
        while (end := self._received.find(HEAD_END)) >= 0 and len(self.heads) < self._count:
            head = bytes(self._received[:end])
            del self._received[: end + len(HEAD_END)]
            is_final = head.startswith(FINAL)  # else another one follows, or this is a body
            self.heads += [head] * is_final
            if not is_final or b"\r\nconnection: close" in head.lower():
                self._end(keep=False)
                return
        if len(self.heads) == self._count:
            if self._received:
                del self.heads[-1:]
            self._end(keep=not self._received)
        elif len(self._received) > MAX_HEAD_BYTES:
            self._end(keep=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""
        self._end(keep=False)

    def _end(self, *, keep: bool) -> None:
        waiter, self._waiter = self._waiter, None
        if not keep or waiter is None:
            self._transport.abort()
        if waiter is not None and not waiter.done():
            waiter.set_result(self.heads)

    def close(self) -> None:
        """Close at once."""
        self._transport.abort()


def _entry(name: str, head: bytes, pages: bool) -> Entry | None:
    """The entry of a file by the head of a response, without the empty line at its end."""
    try:
        fields = parse_fields(head, b"etag")
    except UnexpectedResponse:
        return None
    size = fields.get(b"content-length", b"").rstrip()
    if head[: len(OK)] != OK or not size.isdigit() or len(size) > MAX_DIGITS or not int(size):
        return None
    if not pages and is_html(fields.get(b"content-type", b"").decode("latin-1")):
        return None
    tag, modified, sent = (fields.get(field, b"").rstrip().decode("latin-1") for field in TAG_FIELDS)
    return Entry(name, int(size), tag_of(tag, modified, sent))

"""Sends small files to readers on connections that ask for nothing else.

aiohttp takes longer over a request than the kernel does over a small file, so requests for files and bundles
as the fetch engine writes them are answered before aiohttp sees them. Any other request, such as one for a
range or without a known token, hands its connection to aiohttp for good.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from aiohttp.helpers import rfc822_formatted_time

from podferry.cache.holder.connections import Connections
from podferry.cache.holder.small_reads import Content
from podferry.contract import cache_api

MAX_REQUEST_BYTES = 8192
REQUEST = re.compile(
    rb"GET (%b|%b)/([^/\s?#]+)/([^\s?#]+) HTTP/1\.1\r\n((?:[A-Za-z-]+: [^\r\n]*\r\n)+)\r\n"
    % (cache_api.FILES_PATH.encode(), cache_api.BUNDLES_PATH.encode())
)
TOKEN_FIELD, HOLDER_FIELD = cache_api.TOKEN_HEADER.lower(), cache_api.HOLDER_HEADER.lower()
USUAL_FIELDS = ("host", "user-agent", "accept", "accept-encoding", "authorization")
KNOWN_FIELDS = frozenset((*USUAL_FIELDS, TOKEN_FIELD, HOLDER_FIELD))
"""Header fields that do not change what a request for a complete file means."""


class SmallRequest(NamedTuple):
    """A request for a complete file, or for a bundle of them.

    Attributes:
        digest: Of the manifest.
        name: The file's, or the bundle's.
        fields: Its header, by the names in lower case.
        is_bundle: Whether it is for a bundle.
    """

    digest: str
    name: str
    fields: Mapping[str, str]
    is_bundle: bool = False


def small_request(data: bytes) -> SmallRequest | None:
    """Exactly one request for complete files, or None for anything else."""
    found = REQUEST.fullmatch(data) if len(data) <= MAX_REQUEST_BYTES else None
    if found is None or not data.isascii():
        return None
    path, digest, name, header = (part.decode("ascii") for part in found.groups())
    lines = [line.partition(": ") for line in header.splitlines()]
    fields = {field.lower(): value for field, _, value in lines}
    if len(fields) != len(lines) or "host" not in fields or not fields.keys() <= KNOWN_FIELDS:
        return None
    is_bundle = path == cache_api.BUNDLES_PATH
    return SmallRequest(digest, unquote(name) if "%" in name else name, fields, is_bundle)


def response_head(length: int) -> bytes:
    """The head of a response with files of so many bytes."""
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nAccept-Ranges: bytes\r\n"
        f"Content-Type: application/octet-stream\r\nDate: {rfc822_formatted_time()}\r\n\r\n"
    )
    return head.encode("ascii")


Answer = Callable[[SmallRequest, str], Content | None]
"""What a request asks for, by the reader's address; None if aiohttp is to answer."""


class SmallFiles(asyncio.Protocol):
    """One connection, until another request comes.

    Args:
        answer: Finds files.
        make_handler: Makes the protocol that takes over.
        connections: All of the holder.
    """

    def __init__(
        self, answer: Answer, make_handler: Callable[[], asyncio.Protocol], connections: Connections
    ) -> None:
        self._answer, self._make_handler, self._connections = answer, make_handler, connections
        self._transport: asyncio.Transport | None = None
        self._handler: asyncio.Protocol | None = None
        self._pieces: Iterator[bytes] | None = None
        self._address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what a server of streams makes
        self._transport = transport
        transport.set_write_buffer_limits(0)  # the next piece is read when nothing of the last one is left
        self._address = str((transport.get_extra_info("peername") or ("",))[0])
        self._connections.opened(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._transport is not None:
            self._connections.ended(self._transport)
        if self._handler is not None:
            self._handler.connection_lost(exc)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self._handler is not None:
            self._handler.resume_writing()
        elif self._transport is not None and self._pieces is not None:
            self._send(self._transport, self._pieces)

    def eof_received(self) -> bool | None:
        """See `asyncio.Protocol`."""
        return None if self._handler is None else self._handler.eof_received()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        transport = self._transport
        if transport is None:
            return
        if self._handler is not None:
            self._handler.data_received(data)
            return
        request = small_request(data)
        content = self._answer(request, self._address) if request is not None else None
        first = None if content is None else _first(content)
        if content is None or first is None:
            self._hand_over(transport, data)
        else:
            transport.write(response_head(content.length) + first)
            self._send(transport, content.pieces)

    def _send(self, transport: asyncio.Transport, pieces: Iterator[bytes]) -> None:
        """Send what the reader takes now; it asks again when it has everything."""
        self._connections.answered(transport)
        while not transport.get_write_buffer_size():
            try:
                piece = next(pieces, None)
            except FileNotFoundError:  # the reader asks for these files one by one
                transport.abort()
                return
            if piece is None:
                self._pieces = None
                transport.resume_reading()
                return
            transport.write(piece)
        self._pieces = pieces
        transport.pause_reading()  # a reader that asks for more meanwhile waits, outside of this process

    def _hand_over(self, transport: asyncio.Transport, data: bytes) -> None:
        transport.set_write_buffer_limits()
        self._handler = self._make_handler()
        self._handler.connection_made(transport)
        self._handler.data_received(data)


def _first(content: Content) -> bytes | None:
    """The first piece, or None if it is gone."""
    try:
        return next(content.pieces, b"")
    except FileNotFoundError:
        return None

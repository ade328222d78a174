"""Sessions of aiohttp for requests of our own: sent as they are written, with bounds, without copies."""

from __future__ import annotations

import asyncio

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from podferry.storage.network.tls import tls_context
from podferry.storage.timeouts_and_limits import KIB, MIB

Buffer = bytes | memoryview
SLICE_BYTES = 256 * KIB
"""Bytes given to the connection at a time: it may copy what it cannot send."""
MAX_RESPONSE_BYTES = 8 * MIB
"""Bytes of a response that are read: 1,000 keys of 1,024 bytes, escaped, are less than half of it."""


def open_session(url: str, ca: str) -> aiohttp.ClientSession:
    """A session for requests to the service at `url`, which trusts the certificates of `ca` (PEM) too."""
    # A context takes longer to make than some requests, and plain HTTP needs none.
    tls = tls_context(ca) if url.startswith("https:") else True
    return aiohttp.ClientSession(
        # Callers limit how many requests run in parallel.
        connector=aiohttp.TCPConnector(limit=0, ssl=tls),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("Accept-Encoding", "Content-Type"),
        headers={"User-Agent": "podferry"},
    )


class BufferBody(Payload):
    """A buffer sent without a copy, in slices; each must be sent within `stall_seconds`."""

    def __init__(self, data: Buffer, stall_seconds: float) -> None:
        super().__init__(data)
        self._size = len(data)
        self._stall_seconds = stall_seconds

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send it."""
        view = memoryview(self._value)
        for start in range(0, len(view), SLICE_BYTES):
            async with asyncio.timeout(self._stall_seconds):
                await writer.write(view[start : start + SLICE_BYTES])

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """For aiohttp's messages."""
        return bytes(self._value).decode(encoding, errors)


async def body_of(response: aiohttp.ClientResponse, max_bytes: int) -> bytearray:
    """The body of a response, or its beginning if it is longer than `max_bytes`."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            del body[max_bytes:]
            break
    return body

"""Sessions of aiohttp for requests of our own: sent as they are written, with bounds, without copies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from yarl import URL

from podferry.storage.http.blocking_get import MAX_RESPONSE_BYTES, Response
from podferry.storage.http.blocking_response import MAX_LINE_BYTES
from podferry.storage.http.connector import Connector
from podferry.storage.http.store_client import Buffer, StoreRequest
from podferry.storage.network.tls import tls_context
from podferry.storage.timeouts_and_limits import KIB, Limits

SLICE_BYTES = 256 * KIB
"""Bytes given to the connection at a time: it may copy what it cannot send."""


def open_session(url: str, ca: str) -> aiohttp.ClientSession:
    """A session for requests to the service at `url`, which trusts the certificates of `ca` (PEM) too."""
    # A context takes longer to make than some requests, and plain HTTP needs none.
    tls = tls_context(ca) if url.startswith("https:") else True
    return aiohttp.ClientSession(
        # Callers limit how many requests run in parallel.
        connector=Connector(limit=0, ssl=tls),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("Accept-Encoding", "Content-Type"),
        headers={"User-Agent": "podferry"},
        max_line_size=MAX_LINE_BYTES,
        max_field_size=MAX_LINE_BYTES,
    )


async def exchange(
    session: aiohttp.ClientSession,
    request: StoreRequest,
    url: str,
    headers: Mapping[str, str],
    proxy: str | None,
    limits: Limits,
) -> Response:
    """The response to a request of `StoreClient`, which has signed these headers for this URL.

    Raises:
        aiohttp.ClientError, OSError: There is none.
    """
    scale = max(1.0, len(request.body) / limits.part_bytes)  # the limit is for one part of the usual size
    timeout = aiohttp.ClientTimeout(
        total=request.timeout_seconds or limits.request_seconds * scale,
        sock_connect=limits.connect_seconds,
        sock_read=request.timeout_seconds or limits.stall_seconds,
    )
    pending = session.request(
        request.method,
        URL(url, encoded=True),
        headers=headers,
        data=BufferBody(request.body, limits.stall_seconds) if request.body else None,
        allow_redirects=False,
        proxy=proxy,
        timeout=timeout,
    )
    async with pending as response:
        return response.status, response.headers, bytes(await body_of(response, MAX_RESPONSE_BYTES))


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

"""Sends a file, or a range of it: small ones from one read, large ones by the kernel, without a copy here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from io import FileIO

from aiohttp import web

from podferry.contract.manifest import Entry

OpenAt = Callable[[int, int], FileIO]
"""Opens a file of which bytes are needed, by start and length."""
SENDFILE_BYTES = 128 * 1024
"""From which the kernel sends the file: below, one read and one write cost less than its two more calls."""


def requested_range(request: web.Request, size: int) -> tuple[int, int] | None:
    """Start and length in bytes of a request, or None if no such bytes exist; of several ranges, all."""
    try:
        asked = request.http_range
    except ValueError:  # several ranges, or none that HTTP knows: RFC 9110 lets a server send everything
        return 0, size
    start, stop, _ = asked.indices(size)
    if asked.start is not None and start >= stop:
        return None
    return start, stop - start


def sent_bytes(request: web.Request, response: web.StreamResponse) -> int:
    """How many bytes of a file a response of `send_file` has sent: none for HEAD, nor for a refused range."""
    return 0 if request.method == "HEAD" or response.status == 416 else response.content_length or 0


async def send_file(request: web.Request, open_at: OpenAt, entry: Entry) -> web.StreamResponse:
    """Respond with the requested part of a file; raises `FileNotFoundError` if that is not there."""
    found = requested_range(request, entry.size)
    headers = {"Accept-Ranges": "bytes"}
    if found is None:
        return web.Response(status=416, headers={**headers, "Content-Range": f"bytes */{entry.size}"})
    start, length = found
    if length < entry.size:
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{entry.size}"
    status = 206 if length < entry.size else 200
    try:
        file = open_at(start, length)
    except OSError as error:  # such as a link in its place: the reader takes it from the source
        raise FileNotFoundError(entry.name) from error
    with file:
        if request.method == "HEAD":
            return web.Response(status=status, headers={**headers, "Content-Length": str(length)})
        if length < SENDFILE_BYTES:
            return web.Response(status=status, headers=headers, body=os.pread(file.fileno(), length, start))
        response = web.StreamResponse(status=status, headers=headers)
        response.content_length = length
        await response.prepare(request)
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the reader has closed the connection")
        await asyncio.get_running_loop().sendfile(transport, file, start, length, fallback=False)
        await response.write_eof()
        return response

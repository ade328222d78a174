"""The connections of a holder: bounded, so that many that ask for nothing keep nobody out."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler

WAIT_SECONDS = 75.0
"""For a complete request, from the start or from the last response, as aiohttp waits between two. Who asks
later opens another connection."""
STALL_SECONDS = 75.0
"""Of a reader that takes no byte of its response: a file and a connection are kept for it."""
SWEEP_SECONDS = 5.0
MAX_CONNECTIONS = 10_000
"""Open at a time: 40 MB if all have sent a part of a request."""
KEPT_FILES = 128
"""For requests to the source and to the other holders."""
FILES_EACH = 2
"""The connection, and the file that is sent."""


class Connections:
    """Those that are open. Of too many, those that wait longest for a request are closed.

    Args:
        most: So many at a time.
        now: A monotonic clock in seconds.
    """

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = most, now
        self._waiting: dict[asyncio.Transport, float] = {}  # the longest waiting first
        self._served: set[asyncio.Transport] = set()

    def opened(self, transport: asyncio.Transport) -> None:
        """A connection begins to wait for its first request."""
        self._waiting[transport] = self._now()
        while self._waiting and len(self._waiting) + len(self._served) > self._most:
            self._close(next(iter(self._waiting)))

    def ended(self, transport: asyncio.Transport) -> None:
        """It is closed."""
        self._waiting.pop(transport, None)
        self._served.discard(transport)

    def answered(self, transport: asyncio.Transport) -> None:
        """It waits for its next request."""
        if self._waiting.pop(transport, None) is not None or transport in self._served:
            self._served.discard(transport)
            self._waiting[transport] = self._now()

    def asked(self, transport: asyncio.Transport) -> None:
        """Its request is complete, and is being answered."""
        if self._waiting.pop(transport, None) is not None:
            self._served.add(transport)

    @web.middleware
    async def watch(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Know of the requests that aiohttp answers."""
        transport = request.transport
        if transport is None:
            return await handler(request)
        self.asked(transport)
        try:
            return await handler(request)
        finally:
            self.answered(transport)

    async def close_late(self) -> None:
        """Close for ever those that have sent no complete request in time."""
        while True:
            self.sweep()
            await asyncio.sleep(SWEEP_SECONDS)

    def sweep(self) -> None:
        """Close those that have sent no complete request in time."""
        since = self._now() - WAIT_SECONDS
        for transport in [one for one, began in self._waiting.items() if began < since]:
            self._close(transport)

    def close(self) -> None:
        """Close those that wait."""
        for transport in tuple(self._waiting):
            self._waiting.pop(transport)
            transport.close()

    def _close(self, transport: asyncio.Transport) -> None:
        self._waiting.pop(transport)
        transport.abort()


def end_stalled(listener: socket.socket) -> None:
    """Have the kernel end connections whose peer takes nothing, or is gone, for `STALL_SECONDS`.

    Connections inherit the option from the listener. Source: tcp(7), TCP_USER_TIMEOUT, which also counts
    while the peer's window is closed.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(STALL_SECONDS * 1000))


def most_connections(files: int) -> int:
    """How many connections a process may have that may open so many files."""
    return min(MAX_CONNECTIONS, max(1, (files - KEPT_FILES) // FILES_EACH))

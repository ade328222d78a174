"""GET requests in threads: for short listings, aiohttp takes longer to import.

Only without a proxy and without a body; everything else goes through `podferry.storage.http.plain_session`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar
from urllib.parse import urlsplit

from podferry.storage.http.blocking_connection import BlockingConnection
from podferry.storage.http.blocking_response import BlockingResponse
from podferry.storage.timeouts_and_limits import MIB, Limits

MAX_RESPONSE_BYTES = 8 * MIB
"""Bytes of a response that are read: 1,000 keys of 1,024 bytes, escaped, are less than half of it."""
Response = tuple[int, Mapping[str, str], bytes]
"""Status, headers by case-insensitive name, and body."""
T = TypeVar("T")


class BlockingGets:
    """Sends requests to one server. Connections are kept open until `close`."""

    def __init__(self, url: str, ca: str, limits: Limits) -> None:
        """Prepare; `ca` has certificates (PEM) that are trusted in addition to the system's."""
        self._url, self._ca, self._limits = urlsplit(url), ca, limits
        self._threads: ThreadPoolExecutor | None = None
        self._idle: list[BlockingConnection] = []
        self._lock = threading.Lock()

    async def get(self, url: str, headers: Mapping[str, str], seconds: float, max_bytes: int) -> Response:
        """The response to a request, its body cut behind `max_bytes`. Raises as `read`."""

        def read(response: BlockingResponse) -> Response:
            return response.status, response.headers, response.read(max_bytes)

        return await self.read(url, headers, seconds, read)

    async def read(
        self,
        url: str,
        headers: Mapping[str, str],
        seconds: float,
        read: Callable[[BlockingResponse], T],
    ) -> T:
        """What `read` makes of a response, in a thread. The connection is kept if it has read everything.

        Raises:
            OSError: There is none, or a time-out.
            What `read` raises.
        """
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._limits.worker_threads, "gets")
        used: list[BlockingConnection] = []
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                return await loop.run_in_executor(self._threads, self._get, url, headers, read, used)
        finally:
            for connection in used:  # of a request that was given up: its thread ends at once
                connection.abort()

    async def close(self) -> None:
        """Close the connections. A request afterwards opens its own."""
        threads, self._threads = self._threads, None
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        if threads is not None:
            threads.shutdown(wait=False)

    def _get(
        self,
        url: str,
        headers: Mapping[str, str],
        read: Callable[[BlockingResponse], T],
        used: list[BlockingConnection],
    ) -> T:
        """Send a request; `used` has the connection while it is in use. Blocks."""
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            with suppress(ConnectionError):
                return self._exchange(kept, url, headers, read, used)
            kept.close()  # the server has closed it meanwhile
            used.clear()
        return self._exchange(self._connected(used), url, headers, read, used)

    def _connected(self, used: list[BlockingConnection]) -> BlockingConnection:
        connection = BlockingConnection(self._url, self._ca, self._limits)
        used.append(connection)
        connection.connect()
        return connection

    def _exchange(
        self,
        connection: BlockingConnection,
        url: str,
        headers: Mapping[str, str],
        read: Callable[[BlockingResponse], T],
        used: list[BlockingConnection],
    ) -> T:
        used[:] = [connection]
        response = connection.get(f"/{url.partition('://')[2].partition('/')[2]}", headers)
        found = read(response)
        if response.is_reusable:
            with self._lock:
                self._idle.append(connection)
            used.clear()
        return found

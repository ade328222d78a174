"""GET requests of the standard library, in threads: for short listings, aiohttp takes longer to import.

Only without a proxy and without a body; everything else goes through `podferry.storage.http.plain_session`.
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar, cast
from urllib.parse import urlsplit

from podferry.storage.network.proxies import DEFAULT_PORTS
from podferry.storage.network.tls import tls_context
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
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    async def get(self, url: str, headers: Mapping[str, str], seconds: float, max_bytes: int) -> Response:
        """The response to a request, its body cut behind `max_bytes`. Raises as `read`."""

        def read(response: http.client.HTTPResponse) -> Response:
            body = response.read(max_bytes)  # the fields have a mapping's methods
            return response.status, cast("Mapping[str, str]", response.headers), body

        return await self.read(url, headers, seconds, read)

    async def read(
        self,
        url: str,
        headers: Mapping[str, str],
        seconds: float,
        read: Callable[[http.client.HTTPResponse], T],
    ) -> T:
        """What `read` makes of a response, in a thread. The connection is kept if it has read everything.

        Raises:
            OSError, http.client.HTTPException: There is none; a time-out is an `OSError`.
            What `read` raises.
        """
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._limits.worker_threads, "gets")
        used: list[http.client.HTTPConnection] = []
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                return await loop.run_in_executor(self._threads, self._get, url, headers, read, used)
        finally:
            for connection in used:  # of a request that was given up: its thread ends at once
                _abort(connection)

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
        read: Callable[[http.client.HTTPResponse], T],
        used: list[http.client.HTTPConnection],
    ) -> T:
        """Send a request; `used` has the connection while it is in use. Blocks."""
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            with suppress(http.client.RemoteDisconnected, ConnectionError):
                return self._exchange(kept, url, headers, read, used)
            used.clear()  # the server has closed it meanwhile
        return self._exchange(self._connected(used), url, headers, read, used)

    def _connected(self, used: list[http.client.HTTPConnection]) -> http.client.HTTPConnection:
        host, seconds = self._url.hostname or "", self._limits.connect_seconds
        port = self._url.port or DEFAULT_PORTS[self._url.scheme]
        connection = (
            http.client.HTTPSConnection(host, port, timeout=seconds, context=tls_context(self._ca))
            if self._url.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=seconds)
        )
        used.append(connection)
        connection.connect()
        connection.sock.settimeout(self._limits.stall_seconds)
        return connection

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        url: str,
        headers: Mapping[str, str],
        read: Callable[[http.client.HTTPResponse], T],
        used: list[http.client.HTTPConnection],
    ) -> T:
        used[:] = [connection]
        target = url.partition("://")[2].partition("/")[2]
        connection.putrequest("GET", f"/{target}", skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in {"User-Agent": "podferry", **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        found = read(response)
        if response.isclosed() and not response.will_close:
            with self._lock:
                self._idle.append(connection)
            used.clear()
        return found


def _abort(connection: http.client.HTTPConnection) -> None:
    """Close a connection that another thread may be waiting at."""
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()

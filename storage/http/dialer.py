"""Opens a pool's connections in the background, to each of the store's addresses in turn."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from itertools import cycle

from podferry.storage.http.tunnel import open_tunnel
from podferry.storage.request_builder import Origin
from podferry.storage.timeouts_and_limits import LIMITS

REDIAL_SECONDS = 0.5
"""How long a connection that could not be opened still counts as pending."""


class Dialer:
    """Connects to one origin. Its name is resolved once: a large store answers with several addresses.

    `tasks` are the connections that are being opened; `on_failure` is called if one could not be.
    """

    def __init__(
        self,
        origin: Origin,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        on_failure: Callable[[], None],
    ) -> None:
        self._origin, self._make_protocol, self._on_failure = origin, make_protocol, on_failure
        self._tls = origin.ssl_context()
        self._addresses: Iterator[str] | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Open a connection in the background."""
        task = asyncio.create_task(self._run())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _run(self) -> None:
        try:
            await self.dial()
        except OSError:  # includes TimeoutError and certificate errors
            self._on_failure()
            await asyncio.sleep(REDIAL_SECONDS)

    async def dial(self) -> None:
        """Open a connection and wait until it is open.

        Raises:
            OSError: The name is unknown, nothing answers there, its certificate is not trusted, or the proxy
                refuses.
        """
        loop = asyncio.get_running_loop()
        server = self._origin.proxy or self._origin
        if self._addresses is None:
            found = await loop.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
            self._addresses = cycle(dict.fromkeys(str(address[0]) for *_, address in found))
        async with asyncio.timeout(LIMITS.connect_seconds):
            address = next(self._addresses)
            if self._origin.proxy is not None and self._tls is not None:
                await open_tunnel(address, self._origin.proxy, self._tls, self._origin, self._make_protocol)
                return
            name = self._origin.host if self._tls else None
            await loop.create_connection(
                self._make_protocol, address, server.port, ssl=self._tls, server_hostname=name
            )

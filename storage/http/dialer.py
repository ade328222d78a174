"""Opens the lane's connections, to one of the store's addresses after the other."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

from podferry.storage.limits import LIMITS
from podferry.storage.request_builder import Origin


class Dialer:
    """Connects to one origin. Its name is looked up once: a large store answers with several addresses."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._tls: dict[str, Any] = {}
        if origin.tls:
            self._tls = {"ssl": origin.context(), "server_hostname": origin.host}
        self._addresses: Iterator[str] | None = None

    async def dial(self, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        """Open a connection and give it to a protocol.

        Raises:
            OSError: The name is not known, nobody answers there, or its certificate is not trusted.
        """
        loop = asyncio.get_running_loop()
        if self._addresses is None:
            found = await loop.getaddrinfo(self._origin.host, self._origin.port, type=socket.SOCK_STREAM)
            self._addresses = cycle(dict.fromkeys(str(address[0]) for *_, address in found))
        async with asyncio.timeout(LIMITS.connect_seconds):
            await loop.create_connection(protocol, next(self._addresses), self._origin.port, **self._tls)

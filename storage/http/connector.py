"""Connections of a session of aiohttp that end with it."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp


class Connector(aiohttp.TCPConnector):
    """Closes every connection that it has opened.

    aiohttp closes those that are idle or in use. It forgets one whose server refused a request before it had
    read the body: what is left of the body then keeps the socket open until the server reads it or hangs up.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._opened = set[asyncio.Transport]()

    async def connect(self, *args: Any, **options: Any) -> Any:
        """See `aiohttp.BaseConnector.connect`."""
        connection = await super().connect(*args, **options)
        transport = connection.transport
        if transport is not None and transport not in self._opened:
            self._opened = {transport, *filter(_is_open, self._opened)}
        return connection

    async def close(self, *, abort_ssl: bool = False) -> None:
        """See `aiohttp.BaseConnector.close`."""
        await super().close(abort_ssl=abort_ssl)
        for transport in filter(_is_open, self._opened):
            transport.abort()
        await asyncio.sleep(0)  # they close their sockets in the loop's next turn


def _is_open(transport: asyncio.Transport) -> bool:
    """Whether its socket is; asyncio's transports may not be aborted when they have ended by themselves."""
    try:
        socket = transport.get_extra_info("socket")
    except AttributeError:  # asyncio's transport of TLS has let its socket go: it was closed twice
        return False
    return socket is not None and socket.fileno() >= 0

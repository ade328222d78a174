"""Accepts TLS connections so that a flood of them delays no review.

Three things make a connection cost little until it sends a request: its handshake starts when its first bytes
are there, one handshake at a time gets the event loop, and of too many silent connections the oldest are
closed. An event loop's own server runs all the handshakes that are due before it gets to a review: of 1,500
connections at once, for a second.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

FIRST_REQUEST_SECONDS = 10.0
"""A new connection is closed unless its first request's head arrives in this time."""
MAX_SILENT = 512
"""Connections that have sent no request yet; each takes up to 64 KiB in its handshake. API servers open one
for each review that they send at the same time: each at most 200, by `max-mutating-requests-inflight`."""
BACKLOG = 1024
"""Connections that the kernel keeps while the process is busy."""
RETRY_SECONDS = 0.1
"""Before the next attempt if the process has no file descriptor left."""
SHUTDOWN_SECONDS = 1.0
"""Time for a client to confirm the end of TLS before its connection is closed all the same."""


@dataclass(frozen=True, slots=True)
class _Silent:
    """A connection without a request so far: the task that waits for one, and whether one has arrived."""

    task: asyncio.Task[None]
    arrived: asyncio.Event


class Acceptor:
    """Accepts connections from `open` to `close`, and passes them to protocols."""

    def __init__(self, protocol: Callable[[], asyncio.Protocol], context: ssl.SSLContext) -> None:
        """Make a protocol for each connection; call `has_arrived` with it once it gets a request."""
        self._protocol, self._context = protocol, context
        self._silent: dict[asyncio.Protocol, _Silent] = {}
        """The oldest first."""
        self._turn = asyncio.Lock()
        self._listening: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []

    async def open(self, host: str, port: int) -> int:
        """Listen on all addresses of `host`; return the port, which the kernel picks for 0."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            listening = socket.create_server(address[:2], family=family, backlog=BACKLOG)
            listening.setblocking(False)
            self._listening.append(listening)
            self._accepting.append(loop.create_task(self._accept(listening)))
        bound: int = self._listening[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stop listening, and close the connections that have sent no request."""
        tasks = [*self._accepting, *(one.task for one in self._silent.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listening in self._listening:
            listening.close()

    def has_arrived(self, protocol: asyncio.Protocol) -> None:
        """The protocol's connection has sent a request, and so it is no longer silent."""
        if found := self._silent.pop(protocol, None):
            found.arrived.set()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            protocol, arrived = self._protocol(), asyncio.Event()
            task = loop.create_task(self._await_request(connection, protocol, arrived))
            self._silent[protocol] = _Silent(task, arrived)
            if len(self._silent) > MAX_SILENT:
                self._silent.pop(next(iter(self._silent))).task.cancel()

    async def _await_request(
        self, connection: socket.socket, protocol: asyncio.Protocol, arrived: asyncio.Event
    ) -> None:
        """Shake hands and await the first request; close the connection if it is late."""
        end: Callable[[], object] = connection.close
        try:
            # Late or invalid clients are no event: port scanners and load balancers' probes are.
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(FIRST_REQUEST_SECONDS):
                    await _readable(connection)
                    end = (await self._handshake(connection, protocol)).close
                    await arrived.wait()
        finally:
            self._silent.pop(protocol, None)
            if not arrived.is_set():
                end()

    async def _handshake(
        self, connection: socket.socket, protocol: asyncio.Protocol
    ) -> asyncio.BaseTransport:
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(0)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, connection, ssl=self._context, ssl_shutdown_timeout=SHUTDOWN_SECONDS
        )
        return transport


async def _readable(connection: socket.socket) -> None:
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)

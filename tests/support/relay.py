"""A relay in front of a server: it counts what passes, cuts connections, and falls silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

PIECE = 1 << 16


class Relay:
    """A listener on loopback.

    Attributes:
        address: `host:port` of the relay.
        connections: How many there have been.
        received: Bytes that have come from the server.
        cuts: After how many bytes from the server each next connection is cut; empty for never.
        passing: Cleared, it holds back what the server sends.
    """

    def __init__(self, target: str) -> None:
        self.address = ""
        self.connections = self.received = 0
        self.cuts: list[int] = []
        self.passing = asyncio.Event()
        self.passing.set()
        self._target = target

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        left = self.cuts.pop(0) if self.cuts else 1 << 62
        host, _, port = self._target.rpartition(":")
        server_reader, server_writer = await asyncio.open_connection(host, int(port))
        up = asyncio.ensure_future(self._pass_on(reader, server_writer))
        try:
            with suppress(OSError):
                while left > 0 and (data := await server_reader.read(min(PIECE, left))):
                    await self.passing.wait()
                    left -= len(data)
                    self.received += len(data)
                    writer.write(data)
                    await writer.drain()
        finally:
            up.cancel()
            server_writer.transport.abort()
            writer.close()  # what has been passed on arrives
            await asyncio.sleep(0)  # a transport closes its socket one iteration later

    @staticmethod
    async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(PIECE):
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def relaying(target: str) -> AsyncIterator[Relay]:
    """A relay to `host:port`."""
    relay, serving = Relay(target), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await relay.serve(reader, writer)
        finally:
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    relay.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await server.wait_closed()

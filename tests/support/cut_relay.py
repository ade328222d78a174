"""A relay that cuts connections in the middle of what a server sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class CutRelay:
    """Passes bytes on, and cuts the connection that reaches a number of them.

    Attributes:
        address: Where it listens, `host:port`.
        tasks: One for each connection.
        cuts: Connections that it will still cut.
        passed: Bytes of the server that it passed on.
    """

    def __init__(self, server: str, after: int, cuts: int) -> None:
        host, _, port = server.rpartition(":")
        self._server, self._after = (host, int(port)), after
        self.cuts, self.passed, self.address = cuts, 0, ""
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection."""
        task = asyncio.create_task(self._relay(reader, writer))
        self.tasks.add(task)
        with suppress(asyncio.CancelledError):
            await task

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        above, below = await asyncio.open_connection(*self._server)
        up = asyncio.create_task(self._copy(reader, below))
        try:
            await self._down(above, writer)
        finally:
            up.cancel()
            for stream in (writer, below):
                stream.transport.abort()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = 0
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                sent += len(data)
                self.passed += len(data)
                writer.write(data)
                await writer.drain()
                if self.cuts and sent > self._after:
                    self.cuts -= 1
                    return

    @staticmethod
    async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def cut_relay(server: str, after: int, cuts: int) -> AsyncIterator[CutRelay]:
    """A relay to `host:port`; the first `cuts` connections to carry more than `after` bytes are cut."""
    relay = CutRelay(server, after, cuts)
    listener = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    async with listener:
        yield relay
        for task in relay.tasks:
            task.cancel()
        await asyncio.gather(*relay.tasks, return_exceptions=True)

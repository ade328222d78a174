"""A relay that cuts connections in the middle of what they carry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

from podferry.storage.credentials.login import server_address


class CutRelay:
    """Passes bytes on, and cuts the connection that reaches a number of them.

    Attributes:
        address: Where it listens, `host:port`.
        tasks: One for each connection.
        cuts: Connections that it will still cut.
        passed: Bytes that it passed on in the direction that it cuts.
    """

    def __init__(self, after: int, cuts: int, *, upward: bool = False) -> None:
        self._after, self._upward = after, upward
        self.cuts, self.passed, self.address = cuts, 0, ""
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(
        self, server: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Handle one connection."""
        task = asyncio.create_task(self._relay(server, reader, writer))
        self.tasks.add(task)
        with suppress(asyncio.CancelledError):
            await task

    async def _relay(
        self, server: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        above, below = await asyncio.open_connection(*server)
        ways = [
            asyncio.create_task(self._copy(reader, below, counted=self._upward)),
            asyncio.create_task(self._copy(above, writer, counted=not self._upward)),
        ]
        whole = False
        try:
            for way in asyncio.as_completed(ways):
                whole = await way
                if not whole:
                    break
        finally:
            for task in ways:
                task.cancel()
            for stream in (writer, below):
                stream.close() if whole else stream.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool
    ) -> bool:
        """Copy one direction; whether it ended in order."""
        sent = 0
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                is_cut = counted and self.cuts > 0 and sent + len(data) > self._after
                self.cuts -= is_cut
                data = data[: max(0, self._after - sent)] if is_cut else data
                writer.write(data)
                await writer.drain()
                if is_cut:
                    return False
                if counted:
                    sent += len(data)
                    self.passed += len(data)
            writer.write_eof()
            return True
        return False


@asynccontextmanager
async def cut_relay(
    server: str,
    after: int,
    cuts: int,
    *,
    upward: bool = False,
    host: str = "127.0.0.1",
    ports: Sequence[int] = (),
) -> AsyncIterator[CutRelay]:
    """A relay to `host:port`; the first `cuts` connections to carry more than `after` bytes are cut.

    Args:
        server: Where it connects to.
        after: Bytes of one direction.
        cuts: How many connections.
        upward: Whether bytes of the client count instead of those of the server.
        host: Where it listens.
        ports: Of the server, for transfers: the relay listens on the same ones.
    """
    relay = CutRelay(after, cuts, upward=upward)
    name, _, port = server.rpartition(":")
    async with AsyncExitStack() as stack:
        for target, own in ((int(port), 0), *((port, port) for port in ports)):
            handler = partial(relay.serve, (name, target))
            listener = await stack.enter_async_context(await asyncio.start_server(handler, host, own))
            relay.address = relay.address or server_address(host, listener.sockets[0].getsockname()[1])
        try:
            yield relay
        finally:
            for task in relay.tasks:
                task.cancel()
            await asyncio.gather(*relay.tasks, return_exceptions=True)

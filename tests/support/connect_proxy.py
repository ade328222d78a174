"""An HTTP proxy on loopback, and a relay that adds TLS to a server.

The proxy opens tunnels (CONNECT) and forwards plain requests, as proxies of companies do. It resolves names
itself, to ports of this machine: `store` exists only behind it, so whoever reaches it used the proxy.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

HEAD_END = b"\r\n\r\n"


class ConnectProxy:
    """A proxy.

    Attributes:
        url: Where it listens.
        ports: The port of this machine by `host:port` that clients ask for.
        requests: What they asked for, such as `CONNECT store:443`.
        password: `user:password` that is required, or None.
        refusal: The status of every answer, or None.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.ports: dict[str, int] = {}
        self.requests: list[str] = []
        self.password: str | None = None
        self.refusal: int | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(HEAD_END)
            method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
            self.requests.append(f"{method} {target}")
            port = self.ports.get(target if method == "CONNECT" else urlsplit(target).netloc)
            status = self._refused(head) or (502 if port is None else 0)
            if status:
                writer.write(f"HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
            elif port is not None:
                await self._pass_on(method, head, (reader, writer), port)
        writer.close()

    def _refused(self, head: bytes) -> int:
        if self.refusal is not None:
            return self.refusal
        if self.password is None:
            return 0
        expected = b"Proxy-Authorization: Basic " + base64.b64encode(self.password.encode())
        return 0 if expected.lower() in head.lower() else 407

    async def _pass_on(
        self, method: str, head: bytes, client: tuple[asyncio.StreamReader, asyncio.StreamWriter], port: int
    ) -> None:
        server = await asyncio.open_connection("127.0.0.1", port)
        if method == "CONNECT":
            client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            line, _, rest = head.partition(b"\r\n")
            split = urlsplit(line.decode().split(" ")[1])
            path = split.path + (f"?{split.query}" if split.query else "")
            server[1].write(f"{method} {path} HTTP/1.1\r\nConnection: close\r\n".encode() + rest)
        await _pump(client, server)


@asynccontextmanager
async def connect_proxy() -> AsyncIterator[ConnectProxy]:
    """Start a proxy."""
    made: list[ConnectProxy] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await made[0].serve(reader, writer)

    async with _listening(serve) as port:
        made.append(ConnectProxy(port))
        yield made[0]


@asynccontextmanager
async def tls_relay(context: object, port: int) -> AsyncIterator[int]:
    """Serve TLS in front of a plain server at `port`; yields the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await _pump((reader, writer), await asyncio.open_connection("127.0.0.1", port))
        writer.close()

    async with _listening(serve, ssl=context) as listening:
        yield listening


@asynccontextmanager
async def _listening(serve: object, **options: object) -> AsyncIterator[int]:
    running: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        running[asyncio.current_task()] = writer
        await serve(reader, writer)

    server = await asyncio.start_server(tracked, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in running.values():
            writer.transport.abort()
        closings = [writer.wait_closed() for writer in running.values()]
        await asyncio.gather(*running, *closings, return_exceptions=True)


async def _pump(one: tuple, other: tuple) -> None:
    """Pass bytes on in both directions until either end closes."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

    copies = [asyncio.create_task(copy(one[0], other[1])), asyncio.create_task(copy(other[0], one[1]))]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in copies:
            task.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        other[1].close()
        with suppress(OSError):
            await other[1].wait_closed()

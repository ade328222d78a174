"""A server of SMB 2 that answers as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from podferry.storage.smb.connection import Connection
from podferry.storage.smb.messages import HEADER, IS_RESPONSE, MAGIC

Answer = Callable[[bytes], Iterable[bytes]]
"""The frames, without their lengths, that answer one frame."""


def message(
    number: int, status: int = 0, body: bytes = b"", flags: int = 0, following: int = 0, granted: int = 1
) -> bytes:
    """One response."""
    fields = (MAGIC, 64, 0, status, 0, granted, IS_RESPONSE | flags, following, number, 0, 0, 7, b"")
    return HEADER.pack(*fields) + body


def numbers(frame: bytes) -> list[int]:
    """The message numbers of a frame's requests."""
    found, start, following = [], 0, 1
    while following:
        following = int.from_bytes(frame[start + 20 : start + 24], "little")
        found.append(int.from_bytes(frame[start + 24 : start + 32], "little"))
        start += following
    return found


def framed(data: bytes) -> bytes:
    """A frame with its length."""
    return len(data).to_bytes(4, "big") + data


@asynccontextmanager
async def connected(answer: Answer, stall_seconds: float = 60.0) -> AsyncIterator[Connection]:
    """A connection to a server with these answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(4), "big")
                for part in answer(await reader.readexactly(length)):
                    writer.write(part)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    loop, port = asyncio.get_running_loop(), server.sockets[0].getsockname()[1]
    _, connection = await loop.create_connection(lambda: Connection(stall_seconds), "127.0.0.1", port)
    try:
        yield connection
    finally:
        connection.abort()
        server.close()
        await server.wait_closed()

"""Uploads whose connection breaks: aiohttp must not repeat them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import pytest

from podferry.storage.http.sent_once import sent_once

PIECE = bytes(1 << 16)
ONE_MORE_REQUEST = b"HTTP/1.1 204 No Content\r\n\r\n"


async def pieces() -> AsyncIterator[bytes]:
    """A body that is longer than the buffers of both ends."""
    for _ in range(1_000):
        yield PIECE


@pytest.fixture
async def breaking():
    """A server that breaks a connection at a PUT, and the requests that it has seen."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):  # closed by the client
            while (method := (await reader.readuntil(b"\r\n\r\n")).split()[0]) != b"PUT":
                seen.append(method.decode())
                writer.write(ONE_MORE_REQUEST)
            seen.append("PUT")
        writer.transport.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_body_is_not_sent_again(breaking, *, reused: bool, streamed: bool) -> None:
    url, seen = breaking
    async with aiohttp.ClientSession(middlewares=(sent_once,)) as session:
        if reused:
            async with session.get(url) as response:
                assert response.status == 204
        with pytest.raises(aiohttp.ClientOSError):
            await session.put(url, data=pieces() if streamed else 15 * PIECE)
    assert seen.count("PUT") == 1


@pytest.mark.parametrize("middlewares", [(), (sent_once,)])
async def test_a_request_without_a_body_is_repeated(breaking, middlewares) -> None:
    url, seen = breaking
    async with aiohttp.ClientSession(middlewares=middlewares) as session:
        async with session.get(url) as response:
            assert response.status == 204
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.put(url)
    assert seen == ["GET", "PUT", "PUT"]


async def test_a_server_that_is_not_there_is_named_as_before(unused_tcp_port: int) -> None:
    async with aiohttp.ClientSession(middlewares=(sent_once,)) as session:
        with pytest.raises(aiohttp.ClientConnectorError, match="Cannot connect"):
            await session.put(f"http://127.0.0.1:{unused_tcp_port}", data=b"1")

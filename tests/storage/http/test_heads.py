"""Sizes and tags by plain responses; everything else is left to the store's own client."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from podferry.contract.manifest import Entry
from podferry.storage.http.get_requests import PlainGetBuilder, PlainRequest
from podferry.storage.http.heads import MAX_REFUSED, HeadRequests
from podferry.storage.request_builder import request_address
from tests.support.patience import PATIENCE

PLAIN = b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\nETag: "t"\r\n\r\n'


@pytest.fixture
async def asked():
    """Asks a server with this response for files; what was found, and the connections that it took."""

    async def asks(response: bytes, count: int = 1, seconds: float = PATIENCE, *, close: bool = False):
        connections, requests, tasks = 0, 0, []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections, requests
            connections += 1
            tasks.append(asyncio.current_task())
            with suppress(asyncio.IncompleteReadError, OSError):
                while request := await reader.readuntil(b"\r\n\r\n"):
                    requests += 1
                    assert request.startswith(b"HEAD /a%20b")
                    assert b"Range" not in request
                    writer.write(response)
                    if close:
                        break
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            address = request_address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            builder = PlainGetBuilder(PlainRequest(address, lambda name: f"/{name.replace(' ', '%20')}"))
            async with HeadRequests(builder, 2, seconds) as heads:
                found = await asyncio.gather(*(heads.entry(f"a b{number}") for number in range(count)))
            await asyncio.gather(*tasks)
        return found, connections, requests

    return asks


@pytest.mark.parametrize("close", [False, True])
async def test_files(asked, close: bool) -> None:
    found, connections, _ = await asked(PLAIN, 9, close=close)
    assert found == [Entry(f"a b{number}", 7, '"t"') for number in range(9)]
    assert connections == (9 if close else 2)


async def test_a_file_without_a_tag(asked) -> None:
    found, _, _ = await asked(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\n")
    assert found == [Entry("a b0", 12)]


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 301 Moved\r\nLocation: /b\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.1 206 Partial\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.1 204 None\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -7\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 8\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Type: text/html\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        PLAIN + b"1234567",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20),
        b"\0" * 100 + b"\r\n\r\n",
    ],
)
async def test_what_is_not_plain_is_nothing(asked, response: bytes) -> None:
    assert (await asked(response))[0] == [None]


async def test_a_connection_that_breaks_is_nothing(asked) -> None:
    assert (await asked(PLAIN[:20], close=True))[0] == [None]


async def test_a_server_without_plain_responses_is_not_asked_twice_for_every_file(asked) -> None:
    found, _, requests = await asked(b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", 100)
    assert found == [None] * 100
    assert MAX_REFUSED <= requests <= MAX_REFUSED + 2


async def test_a_server_that_hangs(asked) -> None:
    with pytest.raises(TimeoutError):
        await asked(b"HTTP/1.1 200 OK\r\n", seconds=0.1)


async def test_a_port_that_nobody_listens_on() -> None:
    builder = PlainGetBuilder(PlainRequest(request_address("http://127.0.0.1:1"), lambda name: f"/{name}"))
    async with HeadRequests(builder, 2, PATIENCE) as heads:
        assert await heads.entry("a") is None

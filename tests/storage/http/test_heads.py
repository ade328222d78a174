"""Sizes and tags by plain responses; everything else is left to the store's own client."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress

import pytest

from podferry.contract.manifest import Entry
from podferry.storage.http.get_requests import PlainGetBuilder, PlainRequest
from podferry.storage.http.heads import MAX_REFUSED, PIPELINED, HeadRequests
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


async def test_a_date_is_the_tag_where_there_is_no_etag(asked) -> None:
    dates = b"Date: Sat, 28 Nov 2026 10:00:09 GMT\r\nLast-Modified: Sat, 28 Nov 2026 10:00:00 GMT"
    found, _, _ = await asked(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n%s\r\n\r\n" % dates)
    assert found == [Entry("a b0", 7, "Sat, 28 Nov 2026 10:00:00 GMT")]


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


Respond = Callable[[str, int], bytes]
"""What is sent for a file, by its name and its number on the connection; nothing closes the connection."""


async def listed(respond: Respond, count: int, seconds: float = PATIENCE) -> tuple[list[Entry], list[str]]:
    """The entries of files that are asked for together, and the names that were requested."""
    requested: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())  # type: ignore[arg-type]
        with suppress(asyncio.IncompleteReadError, OSError):
            for number in itertools.count():
                requested.append((await reader.readuntil(b"\r\n\r\n")).split()[1].decode()[1:])
                response = respond(requested[-1], number)
                writer.write(response)
                if not response or b"close" in response:
                    break
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        address = request_address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        builder = PlainGetBuilder(PlainRequest(address, lambda name: f"/{name}"))
        try:
            async with HeadRequests(builder, 2, seconds) as heads:
                found = await heads.entries([str(number) for number in range(1, count + 1)])
        finally:
            await asyncio.gather(*tasks)
    return sorted(found, key=lambda entry: entry.size), requested


def sized(name: str, more: str = "") -> bytes:
    """A response whose size is the file's name."""
    return f"HTTP/1.1 200 OK\r\nContent-Length: {name}\r\n{more}\r\n".encode()


@pytest.mark.parametrize("count", [0, 1, 2, PIPELINED, 5 * PIPELINED + 1])
async def test_files_are_asked_for_together(count: int) -> None:
    found, requested = await listed(lambda name, number: sized(name), count)
    assert found == [Entry(str(number), number) for number in range(1, count + 1)]
    assert len(requested) == count


async def test_a_server_that_ends_a_connection_is_asked_for_the_rest_on_another() -> None:
    def respond(name: str, number: int) -> bytes:
        return sized(name, "Connection: close\r\n" if number == 6 else "")

    found, _ = await listed(respond, 50)
    assert found == [Entry(str(number), number) for number in range(1, 51)]


async def test_a_connection_that_breaks_loses_no_response() -> None:
    """What has no response yet is asked for again, or left to the store."""
    found, _ = await listed(lambda name, number: sized(name) if number != 6 else b"", 50)
    assert all(entry == Entry(entry.name, int(entry.name)) for entry in found)
    assert len(found) >= 6


async def test_a_server_that_closes_at_the_second_request_is_asked_one_by_one() -> None:
    found, requested = await listed(lambda name, number: sized(name) if number == 0 else b"", 9)
    assert {entry.name for entry in found} >= {"1"}
    assert len(requested) <= 2 * 9


@pytest.mark.parametrize(
    "odd",
    [
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1\r\n\r\n",
    ],
)
async def test_no_response_is_taken_for_that_of_another_file(odd: bytes) -> None:
    found, _ = await listed(lambda name, number: odd if name == "5" else sized(name), 20)
    assert all(entry == Entry(entry.name, int(entry.name)) for entry in found)
    assert len(found) >= 4


async def test_what_is_not_plain_is_left_out() -> None:
    page = sized("7", "Content-Type: text/html\r\n")
    found, requested = await listed(lambda name, number: page if int(name) % 3 == 0 else sized(name), 20)
    assert [entry.size for entry in found] == [number for number in range(1, 21) if number % 3]
    assert len(requested) == 20


async def test_a_server_without_plain_responses_is_not_asked_for_every_file() -> None:
    found, requested = await listed(lambda name, number: b"HTTP/1.1 404 None\r\n\r\n", 50 * PIPELINED)
    assert found == []
    assert len(requested) < 5 * PIPELINED


async def test_a_server_that_hangs_between_responses() -> None:
    with pytest.raises(TimeoutError):
        await listed(lambda name, number: sized(name) if int(name) < 3 else b"HTTP/1.1", 9, seconds=0.1)

"""A range of a file of a web server is the requested one, or an error that says what was received."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from aiohttp import web

from podferry.contract.errors import Changed, Corrupt, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from tests.support.web_server import ScriptedServer

DATA = b"0123456789"
BINARY = "application/octet-stream"
PAGE = b"\n<!DOCTYPE html><html>Sign in</html>"


def responds(status: int, body: bytes = DATA, kind: str = BINARY, content_range: str = ""):
    """A server that gives the same response to every GET, and the right one to HEAD."""

    async def handle(request: web.Request) -> web.Response:
        if request.method == "HEAD":
            return web.Response(headers={"Content-Length": "10", "Content-Type": BINARY})
        headers = {"Content-Type": kind} | ({"Content-Range": content_range} if content_range else {})
        return web.Response(status=status, body=body, headers=headers)

    return handle


@pytest.fixture
async def read(answering):
    """Reads a file from a server with this handler, with the arguments of `Store.read`."""
    opened = []

    async def reads(handler, name="a.bin", **arguments):
        endpoint = await answering(ScriptedServer({"*": handler}).handle)
        opened.append(open_store(parse_uri(f"{endpoint}/set")))
        return bytes(await opened[-1].read(name, **arguments))

    yield reads
    for store in opened:
        await store.close()


@pytest.mark.parametrize("size", [None, 10])
@pytest.mark.parametrize(
    "handler",
    [
        responds(206, b"345", content_range="bytes 3-5/10"),
        responds(206, b"345", content_range="Bytes 3-5/*"),
        responds(206, b"345", "text/html; charset=utf-8", "bytes 3-5/10"),
        responds(200),
        responds(203),
    ],
)
async def test_the_requested_range(read, handler, size) -> None:
    name = "a.html"  # a page may be declared as one
    assert await read(handler, name, start=3, length=3, size=size) == b"345"


OTHERS: Mapping[str, tuple] = {
    "another range": (
        responds(206, b"012", content_range="bytes 0-2/10"),
        "Content-Range bytes 0-2/10, 3 bytes",
    ),
    "no range": (responds(206, b"012"), "HTTP 206, application/octet-stream, no Content-Range, 3 bytes"),
    "several": (responds(206, b"012", "multipart/byteranges; boundary=x"), "multipart/byteranges"),
    "no number": (responds(206, b"345", content_range="bytes three"), "Content-Range bytes three"),
    "more": (responds(206, b"3456", content_range="bytes 3-6/10"), "Content-Range bytes 3-6/10"),
    "less": (responds(206, b"34", content_range="bytes 3-4/10"), "Content-Range bytes 3-4/10"),
    "other length": (
        responds(206, b"34", content_range="bytes 3-5/10"),
        "Content-Range bytes 3-5/10, 2 bytes",
    ),
    "a part as all": (responds(200, b"012"), "HTTP 200, application/octet-stream, no Content-Range, 3 bytes"),
    "more than all": (responds(200, DATA * 2), "HTTP 200, .*, 20 bytes"),
    "accepted": (responds(202, b"345"), "HTTP 202"),
    "no content": (responds(204, b""), "HTTP 204"),
}


@pytest.mark.parametrize("size", [None, 10])
@pytest.mark.parametrize("other", OTHERS)
async def test_other_bytes_are_corrupt(read, other: str, size) -> None:
    handler, received = OTHERS[other]
    with pytest.raises(Corrupt, match=rf"requested bytes 3-5.*; received .*{received}"):
        await read(handler, start=3, length=3, size=size)


def compressed(chunked: bool, ranged: bool):
    async def handle(request: web.Request) -> web.Response:
        if request.method == "HEAD":
            return web.Response(headers={"Content-Length": "10", "Content-Type": BINARY})
        stated = {"Content-Range": "bytes 3-5/10"} if ranged else {}
        response = web.Response(
            status=206 if ranged else 200, body=DATA[3:6] if ranged else DATA, headers=stated
        )
        response.enable_compression(web.ContentCoding.gzip)
        if chunked:
            response.enable_chunked_encoding()
        return response

    return handle


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("ranged", [False, True])
async def test_compressed_bytes_are_not_those_of_the_file(read, chunked: bool, ranged: bool) -> None:
    with pytest.raises(Corrupt, match="Content-Encoding gzip"):
        await read(compressed(chunked, ranged), **({"start": 3, "length": 3, "size": 10} if ranged else {}))


async def test_chunks_are_the_file(read) -> None:
    async def handle(request: web.Request) -> web.Response:
        response = web.Response(body=DATA)
        if request.method == "GET":
            response.enable_chunked_encoding()
        return response

    assert await read(handle, start=3, length=3, size=10) == b"345"
    assert await read(handle) == DATA


async def test_a_part_is_not_the_complete_file(read) -> None:
    with pytest.raises(Corrupt, match=r"requested the complete file; received HTTP 206"):
        await read(responds(206, b"012", content_range="bytes 0-2/10"))


async def test_a_file_of_another_size_has_changed(read) -> None:
    with pytest.raises(Changed, match=r"bytes 3-5/17; 10 bytes were listed"):
        await read(responds(206, b"345", content_range="bytes 3-5/17"), start=3, length=3, size=10)


@pytest.mark.parametrize(
    "handler", [responds(206, b"89", content_range="bytes 8-9/10"), responds(200)], ids=["part", "all"]
)
async def test_a_range_past_the_end(read, handler) -> None:
    with pytest.raises(Corrupt, match=r"ends before the requested bytes .10 bytes; requested 3 from 8"):
        await read(handler, start=8, length=3)


@pytest.mark.parametrize(
    ("start", "handler"),
    [
        (3, responds(206, b"abcdefg", "text/html; charset=utf-8", "bytes 3-9/10")),
        (0, responds(206, b"<html>a", "text/html", "bytes 0-6/10")),
        (0, responds(206, b"<html>a", BINARY, "bytes 0-6/10")),
        (0, responds(200, b"<html>abc\n", "text/html")),
        (0, responds(200, b"<html>abc\n", BINARY)),
        (3, responds(200, b"<HTML>abc\n", "text/plain")),
    ],
)
async def test_a_page_in_the_place_of_a_file(read, start: int, handler) -> None:
    with pytest.raises(Unavailable, match="a web page instead of the file"):
        await read(handler, start=start, length=7, size=10)


@pytest.mark.parametrize("kind", [BINARY, "text/plain", "text/html"])
async def test_a_complete_page_in_the_place_of_a_file(read, kind: str) -> None:
    with pytest.raises(Unavailable, match="a web page instead of the file"):
        await read(responds(200, PAGE, kind), "a.txt")


@pytest.mark.parametrize("name", ["a.HTM", "a.xml", "a.svg", "page"])
async def test_files_may_be_markup(read, name: str) -> None:
    assert await read(responds(200, PAGE, BINARY), name) == PAGE


async def test_a_file_of_the_wrong_type_is_read(read) -> None:
    assert await read(responds(200, DATA, "text/html")) == DATA

"""Responses: as `http.client` reads them, refused where they are not plain, never cut in silence."""

from __future__ import annotations

import http.client
import io

import pytest

from podferry.storage.http.blocking_response import (
    MAX_FIELDS,
    BadResponse,
    BlockingResponse,
    CutBody,
    Fields,
    ForeignGreeting,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PLAIN = {
    "length": b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: "a"\r\n\r\nhello',
    "length, more behind": b"HTTP/1.1 200 OK\r\ncontent-length:5 \r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n",
    "chunks": CHUNKED + b"3\r\nhel\r\n002;a=b\r\nlo\r\n0\r\nTrailer: x\r\n\r\n",
    "no reason": b"HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n",
    "continued": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
    "until the end": b"HTTP/1.1 200 OK\r\nContent-Type: a\r\n\r\nhello",
    "closing": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Close\r\n\r\nab",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab",
    "HTTP/1.0, kept": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nab",
    "no body": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    "lines of Unix": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
}
REFUSED = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a length without end": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n",
    "another coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "a folded field": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
    "a field without a colon": b"HTTP/1.1 200 OK\r\nabc\r\n\r\n",
    "fields without end": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * (MAX_FIELDS + 1) + b"\r\n",
    "a line without end": b"HTTP/1.1 200 OK\r\nA: " + b"b" * (1 << 17) + b"\r\n\r\n",
    "a head that is cut": b"HTTP/1.1 200 OK\r\nContent-Le",
    "no length of a chunk": CHUNKED + b"\r\nhello",
    "a chunk that is longer": CHUNKED + b"3\r\nhello\r\n0\r\n\r\n",
}
CUT = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
    "within a chunk": CHUNKED + b"5\r\nhel",
    "behind a chunk": CHUNKED + b"3\r\nhel\r\n",
    "before a chunk's end": CHUNKED + b"3\r\nhel",
}


def opened(data: bytes) -> BlockingResponse:
    return BlockingResponse(io.BufferedReader(io.BytesIO(data)))  # type: ignore[arg-type]


class Recorded:
    """What `http.client` reads from."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("size", [1, 3, 1 << 16])
def test_plain_responses_are_read_as_the_standard_library_does(name: str, size: int) -> None:
    theirs = http.client.HTTPResponse(Recorded(PLAIN[name]))  # type: ignore[arg-type]
    theirs.begin()
    ours = opened(PLAIN[name])
    assert ours.status == theirs.status
    assert {**ours.headers} == {field.lower(): value.strip() for field, value in theirs.headers.items()}
    assert ours.length == theirs.length
    body = b"".join(iter(lambda: ours.read(size), b""))
    assert body == theirs.read()
    assert ours.is_reusable is (not theirs.will_close)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_plain_is_refused(name: str) -> None:
    with pytest.raises(BadResponse):
        opened(REFUSED[name]).read(100)


@pytest.mark.parametrize("greeting", ["SSH-2.0-OpenSSH_9.2p1", "220 (vsFTPd 3.0.3)"])
def test_the_greeting_of_another_protocol_is_shown(greeting: str) -> None:
    with pytest.raises(ForeignGreeting) as caught:
        opened(f"{greeting}\r\n".encode())
    assert caught.value.greeting == greeting


@pytest.mark.parametrize("line", [b"\x15\x03\x03\x00\x02\x02F", b"HTTP/2 200 OK\r\n", b"\r\n", b"\xff\n"])
def test_what_may_be_damaged_is_no_other_protocol(line: bytes) -> None:
    with pytest.raises(BadResponse) as caught:
        opened(line)
    assert type(caught.value) is BadResponse


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("size", [1, 100])
def test_a_cut_body_is_an_error(name: str, size: int) -> None:
    found = opened(CUT[name])
    with pytest.raises(CutBody):
        list(iter(lambda: found.read(size), b""))
    assert not found.is_reusable


def test_a_body_that_is_not_read_keeps_no_connection() -> None:
    found = opened(PLAIN["length"])
    assert found.read(2) == b"he"
    assert not found.is_reusable


def test_a_closed_connection_is_one_that_was_reset() -> None:
    with pytest.raises(ConnectionResetError):
        opened(b"")


def test_fields_are_found_in_any_case() -> None:
    found = Fields([("Link", "a"), ("link", "b"), ("ETag", "c")])
    assert (found["LINK"], found.all("Link"), found.get("etag"), found.get("x"), len(found)) == (
        *("a", ["a", "b"], "c", None, 2),
    )

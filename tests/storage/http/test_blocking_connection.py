"""The requests of a blocking connection, as a server sees them."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from podferry.storage.http.blocking_connection import BlockingConnection
from podferry.storage.timeouts_and_limits import Limits
from tests.support.patience import PATIENCE

LIMITS = Limits(connect_seconds=PATIENCE, stall_seconds=PATIENCE)


def got(url: str, targets: list[str], headers: dict[str, str]) -> list[bytes]:
    connection = BlockingConnection(urlsplit(url), "", LIMITS)
    try:
        connection.connect()
        return [connection.get(target, headers).read(1000) for target in targets]
    finally:
        connection.abort()


async def echo(request: web.Request) -> web.Response:
    return web.Response(text=f"{request.raw_path} {sorted(request.headers.items())}")


async def test_requests_have_a_host_and_the_given_fields(answering) -> None:
    url = await answering(echo)
    first, second = await asyncio.to_thread(got, url, ["/a%20b?c", "/d"], {"Z": "y"})
    authority = urlsplit(url).netloc
    assert first.decode() == f"/a%20b?c [('Host', '{authority}'), ('User-Agent', 'podferry'), ('Z', 'y')]"
    assert second.startswith(b"/d ")


async def test_a_signed_host_is_sent_as_it_is(answering) -> None:
    url = await answering(echo)
    [found] = await asyncio.to_thread(got, url, ["/"], {"Host": "bucket.example"})
    assert b"('Host', 'bucket.example')" in found
    assert found.count(b"Host") == 1


@pytest.mark.parametrize(
    ("url", "authority"),
    [("http://a:80", "a"), ("https://a:443", "a"), ("https://a:80", "a:80"), ("http://[::1]:8", "[::1]:8")],
)
def test_the_usual_port_is_left_out(url: str, authority: str) -> None:
    assert BlockingConnection(urlsplit(url), "", LIMITS)._authority == authority


@pytest.mark.parametrize(
    ("target", "headers"), [("/a b", {}), ("/a\r\nX: y", {}), ("/", {"A": "b\r\nX: y"}), ("/é", {})]
)
async def test_what_would_end_a_line_is_not_sent(answering, target: str, headers: dict[str, str]) -> None:
    url = await answering(echo)
    with pytest.raises(OSError, match="cannot be sent"):
        await asyncio.to_thread(got, url, [target], headers)

"""The agent's HTTP server over real sockets, with well-behaved clients and others."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import AsyncIterator

import pytest

from podferry.sidecar.control import http_endpoint
from podferry.sidecar.control.http_endpoint import BadRequestError, HttpEndpoint, Request, Response
from tests.support.patience import PATIENCE


class Routes:
    """What is served; `released` ends the route that waits."""

    def __init__(self) -> None:
        self.entered, self.released = asyncio.Event(), asyncio.Event()

    async def echo(self, request: Request) -> Response:
        return Response(json.dumps([request.path, dict(request.query)]).encode())

    async def wait(self, _: Request) -> Response:
        self.entered.set()
        await self.released.wait()
        return Response(b"late", "text/plain")

    async def refuse(self, _: Request) -> Response:
        raise BadRequestError("wait must be a number")

    async def fail(self, _: Request) -> Response:
        raise RuntimeError("a defect")


class Served:
    """A running endpoint."""

    def __init__(self, endpoint: HttpEndpoint, routes: Routes, address: tuple[str, int]) -> None:
        self.endpoint, self.routes, self.address = endpoint, routes, address

    async def ask(self, method: str, target: str) -> tuple[int, bytes]:
        """Status and body, by the standard library's client."""

        def asked() -> tuple[int, bytes]:
            connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
            try:
                connection.request(method, target)
                response = connection.getresponse()
                return response.status, response.read()
            finally:
                connection.close()

        return await asyncio.to_thread(asked)

    async def send(self, data: bytes) -> bytes:
        """Everything that comes back until the server closes."""
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(data)
        try:
            async with asyncio.timeout(PATIENCE):
                return await reader.read()
        finally:
            writer.close()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    routes = Routes()
    endpoint = HttpEndpoint(
        {
            ("GET", "/echo"): routes.echo,
            ("POST", "/mark"): routes.echo,
            ("GET", "/wait"): routes.wait,
            ("GET", "/refuse"): routes.refuse,
            ("GET", "/fail"): routes.fail,
        }
    )
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    await endpoint.start(listener)
    yield Served(endpoint, routes, address)
    routes.released.set()
    await endpoint.cleanup()


async def test_a_request_reaches_its_route_with_its_query(served: Served) -> None:
    assert await served.ask("GET", "/echo?a=1&b=x%20y%2F&c=") == (200, b'["/echo", {"a": "1", "b": "x y/"}]')
    assert await served.ask("POST", "/mark?name=step+1") == (
        200,
        b'["/mark", {"name": "step 1"}]',
    )


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/absent", 404),
        ("POST", "/echo", 405),
        ("GET", "/mark", 405),
        ("DELETE", "/echo", 400),
        ("GET", "/refuse", 400),
        ("GET", "/fail", 500),
        ("HEAD", "/echo", 200),
        ("HEAD", "/mark", 405),
    ],
)
async def test_other_requests_are_refused(served: Served, method: str, target: str, status: int) -> None:
    answered, body = await served.ask(method, target)
    assert answered == status
    assert not body if method == "HEAD" else body.startswith(str(status).encode())
    assert b"defect" not in body


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /echo HTTP/2\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET echo HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /echo\0 HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\x16\x03\x01" + b"\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /echo HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 "),
        (b"GET /echo HTTP/1.1\r\nX: " + b"y" * 17_000 + b"\r\n\r\n", b"HTTP/1.1 431 "),
    ],
)
async def test_what_is_not_http_is_answered_and_closed(served: Served, data: bytes, start: bytes) -> None:
    assert (await served.send(data)).startswith(start)
    assert (await served.ask("GET", "/echo"))[0] == 200


async def test_a_client_that_sends_nothing_does_not_stay(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_endpoint, "HEAD_SECONDS", 0.05)
    assert await served.send(b"GET /echo HTTP/1.1\r\n") == b""


async def test_a_client_that_leaves_disturbs_nobody(served: Served) -> None:
    _, writer = await asyncio.open_connection(*served.address)
    writer.write(b"GET /wait HTTP/1.1\r\n\r\n")
    await served.routes.entered.wait()
    writer.transport.abort()
    served.routes.released.set()
    assert (await served.ask("GET", "/echo"))[0] == 200


async def test_the_end_waits_for_responses_that_have_begun(served: Served) -> None:
    asked = asyncio.create_task(served.ask("GET", "/wait"))
    await served.routes.entered.wait()
    ending = asyncio.create_task(served.endpoint.cleanup())
    await asyncio.sleep(0)
    assert not ending.done()
    served.routes.released.set()
    await ending
    assert await asked == (200, b"late")
    with pytest.raises(OSError, match=r"\w"):
        await served.ask("GET", "/echo")


async def test_the_end_does_not_wait_for_a_client_that_has_not_asked(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("HEAD_SECONDS", "CLEANUP_SECONDS"):
        monkeypatch.setattr(http_endpoint, bound, 2 * PATIENCE)
    reader, writer = await asyncio.open_connection(*served.address)
    writer.write(b"GET /echo")
    await served.ask("GET", "/echo")  # by now the first connection has been accepted, too
    async with asyncio.timeout(PATIENCE):
        await served.endpoint.cleanup()
        assert await reader.read() == b""
    writer.close()


async def test_a_response_that_does_not_end_is_cut_off(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_endpoint, "CLEANUP_SECONDS", 0.05)
    asked = asyncio.create_task(served.send(b"GET /wait HTTP/1.1\r\n\r\n"))
    await served.routes.entered.wait()
    await served.endpoint.cleanup()
    assert await asked == b""

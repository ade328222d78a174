"""A minimal HTTP server for the agent's API: a few routes, no request bodies, one request per connection.

The general servers load a client as well, its certificates included: 50 ms and 10 MiB in each pod, before the
first byte is fetched.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

import msgspec
import structlog

log = structlog.get_logger(__name__)

REQUEST_LINE = re.compile(r"(GET|HEAD|POST) (/[!-~]*) HTTP/1\.[01]")
"""RFC 9112, section 3; only what a route can have."""
MAX_HEAD_BYTES = 16 * 1024
HEAD_SECONDS = 10.0
"""For a request to arrive: a client that connects and sends nothing must not stay for ever."""
CLEANUP_SECONDS = 60.0
"""For responses that have begun; a wait for durability ends with the drain."""


class Request(msgspec.Struct, frozen=True):
    """A request: its path and the values of its query."""

    path: str
    query: Mapping[str, str]


class Response(msgspec.Struct, frozen=True):
    """What a route answers."""

    body: bytes
    content_type: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK


class BadRequestError(Exception):
    """The request cannot be answered; the text says why."""


Route = Callable[[Request], Awaitable[Response]]


def _failure(status: HTTPStatus, text: str = "") -> Response:
    return Response(f"{status.value} {text or status.phrase}\n".encode(), "text/plain; charset=utf-8", status)


class HttpEndpoint:
    """Serves routes, given by method and path. GET routes answer HEAD, too."""

    def __init__(self, routes: Mapping[tuple[str, str], Route]) -> None:
        self._routes = routes
        self._paths = {path for _, path in routes}
        self._open: set[asyncio.Task[None]] = set()
        self._responding: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Serve on a bound socket, which is closed at the end."""
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=MAX_HEAD_BYTES)

    async def cleanup(self) -> None:
        """Take no more requests, and wait for the responses that have begun."""
        if self._server is not None:
            self._server.close()
        if self._responding:
            await asyncio.wait(self._responding, timeout=CLEANUP_SECONDS)
        late = tuple(self._open)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio calls this in a task
        self._open.add(task)
        try:
            await self._serve(reader, writer, task)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            log.debug("request not completed", exc_info=True)
        finally:
            self._open.discard(task)
            self._responding.discard(task)
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            response, only_head = _failure(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), False
        else:
            self._responding.add(task)
            response, only_head = await self._response(head), head.startswith(b"HEAD ")
        lines = (
            f"HTTP/1.1 {response.status.value} {response.status.phrase}",
            f"Content-Type: {response.content_type}",
            f"Content-Length: {len(response.body)}",
            "Connection: close\r\n\r\n",
        )
        writer.write("\r\n".join(lines).encode("ascii") + (b"" if only_head else response.body))
        await writer.drain()

    async def _response(self, head: bytes) -> Response:
        line = head.partition(b"\r\n")[0].decode("latin-1")
        found = REQUEST_LINE.fullmatch(line)
        if found is None:
            return _failure(HTTPStatus.BAD_REQUEST, "a GET or POST request was expected")
        target = urlsplit(found[2])
        route = self._routes.get(("GET" if found[1] == "HEAD" else found[1], target.path))
        if route is None:
            known = target.path in self._paths
            return _failure(HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND)
        try:
            return await route(Request(target.path, dict(parse_qsl(target.query))))
        except BadRequestError as error:
            return _failure(HTTPStatus.BAD_REQUEST, str(error))
        except Exception:  # a defect of one route: the others must still answer
            log.exception("request failed", path=target.path)
            return _failure(HTTPStatus.INTERNAL_SERVER_ERROR)

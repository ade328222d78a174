"""A web server with scripted responses, for what real ones do only when they are misconfigured or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Answer(NamedTuple):
    """A response.

    Attributes:
        text: The body, encoded in UTF-8 unless it is bytes.
        kind: Its Content-Type; empty for none.
        status: HTTP status.
        location: Where it redirects to.
        link: Of the header of that name; empty for none.
        missing: Bytes that the header promises and the body does not have; -1 to send no length at all.
    """

    text: str | bytes = ""
    kind: str = "text/html"
    status: int = 200
    location: str = ""
    missing: int = 0
    link: str = ""


def moved(location: str, status: int = 302) -> Answer:
    return Answer("", "", status, location)


def file(size: int = 5) -> Answer:
    return Answer(b"x" * size, "application/octet-stream")


async def hangs(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    return web.Response()


async def resets(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


class ScriptedServer:
    """Answers by method and path (`HEAD /a`), by path and query, or by path; everything else by `*`.

    Attributes:
        requested: Methods and paths.
    """

    def __init__(self, answers: Mapping[str, Answer | Handler]) -> None:
        self.answers = {"*": Answer(status=404)} | answers
        self.requested: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requested.append(f"{request.method} {request.path}")
        keys = (f"{request.method} {request.path}", request.path_qs, request.path, "*")
        answer = next(self.answers[key] for key in keys if key in self.answers)
        return await (self._send(request, answer) if isinstance(answer, Answer) else answer(request))

    @staticmethod
    async def _send(request: web.Request, answer: Answer) -> web.StreamResponse:
        body = answer.text.encode() if isinstance(answer.text, str) else answer.text
        response = web.StreamResponse(status=answer.status)
        response.headers["Content-Type"] = answer.kind  # without it, aiohttp sends its own
        if answer.location:
            response.headers["Location"] = answer.location
        if answer.link:
            response.headers["Link"] = answer.link
        if answer.missing < 0 and request.transport is not None:
            head = f"HTTP/1.0 {answer.status} OK\r\nContent-Type: {answer.kind}\r\n\r\n"
            request.transport.write(head.encode() + body)
            request.transport.close()
        if answer.status not in {204, 304}:
            response.content_length = len(body) + answer.missing
        await response.prepare(request)
        if request.method != "HEAD":
            await response.write(body)
        if answer.missing > 0 and request.transport is not None:
            request.transport.close()
        return response

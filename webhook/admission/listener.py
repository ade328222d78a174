"""The HTTPS listener: bounds what one client can hold up, and ends without dropping a review.

An API server keeps connections open between reviews. If a replica closed them while it ends, a review that
is already on its way would be lost. So from SIGTERM on each response closes its connection, the listener
stays open until Services have stopped sending, and only then are idle connections closed.
"""

from __future__ import annotations

import asyncio
import ssl
import time

from aiohttp import web
from aiohttp.typedefs import Handler

from podferry.webhook.admission.acceptor import Acceptor
from podferry.webhook.admission.server import MAX_REVIEW_BYTES, Webhook

IDLE_SECONDS = 120.0
"""An idle connection is closed after this time: later than by the API server itself, after 90 s
(`SetTransportDefaults` in k8s.io/apimachinery), so that it never sends a review into a closed connection."""
MAX_IDLE = 256
"""Connections that wait for their next complete review; of more, those that wait longest are closed. Each
takes up to 50 KiB. An API server keeps at most 25 (`idleConnsPerHost` in client-go)."""
BODY_SECONDS = 10.0
"""Time for a request's body to arrive; an API server waits 5 s for the response."""
MAX_BODIES_BYTES = 48 * 1024**2
"""Bytes of the bodies that are arriving; of more, the one that takes longest is closed. A usual review has
30 KiB."""
QUIET_SECONDS = 1.0
"""A replica that ends waits until no review has arrived for this long."""
MAX_DRAIN_SECONDS = 20.0
"""Most time from SIGTERM to the end of the listener, below the pod's grace."""
LAST_RESPONSES_SECONDS = 5.0
"""Time for reviews that are being decided when the listener closes: an API server's timeout."""


class Listener:
    """An open port; `drain` and then `close` end it."""

    def __init__(self, webhook: Webhook) -> None:
        """Set up the listener; `open` starts it."""
        self._webhook = webhook
        app = webhook.application()
        app.middlewares.append(self._watch)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=IDLE_SECONDS,
            shutdown_timeout=LAST_RESPONSES_SECONDS,
            auto_decompress=False,
        )
        self._acceptor: Acceptor | None = None
        self._idle: dict[web.RequestHandler, None] = {}
        """Connections that wait for their next complete review, the longest waiting first."""
        self._bodies: dict[web.RequestHandler, int] = {}
        """Bytes of the bodies that are arriving, by connection, the earliest first."""
        self._last_request = 0.0

    async def open(self, host: str, port: int, context: ssl.SSLContext) -> int:
        """Start listening; return the port, which the kernel picks for 0."""
        await self._runner.setup()
        server = self._runner.server
        assert server is not None  # noqa: S101 - `setup` has made it
        self._acceptor = Acceptor(server, context)
        return await self._acceptor.open(host, port)

    async def drain(self, seconds: float) -> None:
        """Report not ready, and keep serving for `seconds` and until no review has arrived for a while.

        One that is still arriving is waited for: the rest of its body would be ignored after `close`.
        """
        self._webhook.shutting_down = True
        limit = time.monotonic() + max(seconds, MAX_DRAIN_SECONDS)
        rest = seconds
        while rest > 0:
            await asyncio.sleep(rest)
            now = time.monotonic()
            rest = min(limit, (now if self._bodies else self._last_request) + QUIET_SECONDS) - now

    async def close(self) -> None:
        """Close the port and idle connections, and finish the reviews that have arrived."""
        if self._acceptor is not None:
            await self._acceptor.close()
        await self._runner.cleanup()

    @web.middleware
    async def _watch(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = request.protocol
        if self._acceptor is not None:
            self._acceptor.has_arrived(connection)
        if request.method == "POST":
            self._last_request = time.monotonic()
        self._keep(connection)
        try:
            await self._read_body(request)
            self._idle.pop(connection, None)
            response = await handler(request)
        except web.HTTPException as error:
            self._close_at_the_end(error)
            raise
        finally:
            self._idle.pop(connection, None)
            self._keep(connection)
        self._close_at_the_end(response)
        return response

    def _keep(self, connection: web.RequestHandler) -> None:
        """Let a connection wait, unless it does, and close the longest waiting one if there are too many."""
        self._idle.setdefault(connection)
        if len(self._idle) > MAX_IDLE:
            self._idle = {one: None for one in self._idle if one.transport is not None}
        if len(self._idle) > MAX_IDLE:
            longest = next(iter(self._idle))
            del self._idle[longest]
            longest.force_close()

    async def _read_body(self, request: web.Request) -> None:
        """Read the body, which the request then has, within its time."""
        length = MAX_REVIEW_BYTES if request.content_length is None else request.content_length
        self._bodies[request.protocol] = min(length, MAX_REVIEW_BYTES)
        if sum(self._bodies.values()) > MAX_BODIES_BYTES:
            longest = next(iter(self._bodies))
            del self._bodies[longest]
            longest.force_close()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                await request.read()
        except TimeoutError as error:
            text = f"the body has not arrived within {BODY_SECONDS:.0f} s"
            refusal = web.HTTPRequestTimeout(text=text)
            refusal.force_close()
            raise refusal from error
        except ConnectionError as error:  # nobody reads this
            raise web.HTTPBadRequest(text="the connection ended before the body") from error
        finally:
            self._bodies.pop(request.protocol, None)

    def _close_at_the_end(self, response: web.StreamResponse) -> None:
        if self._webhook.shutting_down:
            response.force_close()

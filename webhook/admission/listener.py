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

from podferry.webhook.admission.server import Webhook

FIRST_REQUEST_SECONDS = 10.0
"""A new connection is closed unless its handshake, and then its first request's head, arrive in this time."""
MAX_SILENT = 1000
"""Connections that have sent no request yet; of more, the oldest are closed. Each takes about 40 KiB."""
IDLE_SECONDS = 120.0
"""An idle connection is closed after this time: later than by the API server itself, after 90 s
(`SetTransportDefaults` in k8s.io/apimachinery), so that it never sends a review into a closed connection."""
BACKLOG = 1024
"""Connections that the kernel keeps while the process is busy."""
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
        )
        self._silent: dict[web.RequestHandler, None] = {}
        """Connections without a request so far, the oldest first."""
        self._server: asyncio.Server | None = None
        self._last_request = 0.0

    async def open(self, host: str, port: int, context: ssl.SSLContext) -> int:
        """Start listening; return the port, which the kernel picks for 0."""
        await self._runner.setup()
        self._server = await asyncio.get_running_loop().create_server(
            self._connection,
            host,
            port,
            ssl=context,
            backlog=BACKLOG,
            ssl_handshake_timeout=FIRST_REQUEST_SECONDS,
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def drain(self, seconds: float) -> None:
        """Report not ready, and keep serving for `seconds` and until no review has arrived for a while."""
        self._webhook.shutting_down = True
        limit = time.monotonic() + max(seconds, MAX_DRAIN_SECONDS)
        rest = seconds
        while rest > 0:
            await asyncio.sleep(rest)
            rest = min(limit, self._last_request + QUIET_SECONDS) - time.monotonic()

    async def close(self) -> None:
        """Close the port and idle connections, and finish the reviews that have arrived."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _connection(self) -> asyncio.BaseProtocol:
        server = self._runner.server
        assert server is not None  # noqa: S101 - `open` has set it up
        handler = server()
        self._silent[handler] = None
        asyncio.get_running_loop().call_later(FIRST_REQUEST_SECONDS, self._close_silent, handler)
        if len(self._silent) > MAX_SILENT:
            self._close_silent(next(iter(self._silent)))
        return handler

    def _close_silent(self, handler: web.RequestHandler) -> None:
        if handler in self._silent:
            del self._silent[handler]
            handler.force_close()

    @web.middleware
    async def _watch(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._silent.pop(request.protocol, None)
        if request.method == "POST":
            self._last_request = time.monotonic()
        try:
            response = await handler(request)
        except web.HTTPException as error:
            self._close_at_the_end(error)
            raise
        self._close_at_the_end(response)
        return response

    def _close_at_the_end(self, response: web.StreamResponse) -> None:
        if self._webhook.shutting_down:
            response.force_close()

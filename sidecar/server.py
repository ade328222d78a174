"""The agent's HTTP API: a thin shell over its state. Contract: `podferry.contract.api`."""

from __future__ import annotations

import socket
from collections.abc import Awaitable
from typing import Protocol

import msgspec
from aiohttp import web

from podferry.contract.api import DURABLE_PATH, GATE_PATH, LONGEST_WAIT, STATUS_PATH, Durability, Stage
from podferry.sidecar.state import State


class Flush(Protocol):
    """Waits for durability, see `podferry.sidecar.ferrying.CheckpointFerry.durable`."""

    def __call__(self, seconds: float, *, final: bool = False) -> Awaitable[Durability]:
        """At most `seconds`; `final` says that nobody writes any more."""


FINAL_STAGES = frozenset({Stage.REFUSED, Stage.ENDED})


def _answer(document: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")


def _wait(request: web.Request) -> float:
    try:
        seconds = float(request.query.get("wait", "0"))
    except ValueError:
        raise web.HTTPBadRequest(text="wait must be a number of seconds") from None
    return min(max(seconds, 0.0), LONGEST_WAIT)


class Api:
    """The handlers. `flush` is set once there is something to wait for."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.flush: Flush | None = None

    async def status(self, _: web.Request) -> web.Response:
        """Everything."""
        return _answer(self._state.status)

    async def gate(self, request: web.Request) -> web.Response:
        """Whether training may start; waits until that is settled."""

        def settled() -> bool:
            return self._state.gate().open or self._state.status.stage in FINAL_STAGES

        await self._state.wait_for(settled, _wait(request))
        return _answer(self._state.gate())

    async def durable(self, request: web.Request) -> web.Response:
        """Whether all checkpoints of now are durable; waits for it."""
        if self.flush is None:
            return _answer(Durability(durable=True))
        return _answer(await self.flush(_wait(request), final=request.query.get("final") == "true"))


async def serve(api: Api, listener: socket.socket) -> web.AppRunner:
    """Serve on a bound socket; the caller cleans the runner up."""
    app = web.Application()
    app.router.add_get(STATUS_PATH, api.status)
    app.router.add_get(GATE_PATH, api.gate)
    app.router.add_post(DURABLE_PATH, api.durable)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    return runner

"""The agent's HTTP API: a thin shell over its state. Contract: `podferry.contract.api`."""

from __future__ import annotations

import socket

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from podferry.contract.api import (
    DONE_PATH,
    DURABLE_PATH,
    GATE_PATH,
    MAX_WAIT_SECONDS,
    METRICS_PATH,
    STATUS_PATH,
    Durability,
    Marked,
)
from podferry.contract.errors import Problem
from podferry.contract.status import AgentPhase
from podferry.sidecar.control.agent_api import AgentApi, FlushRequest
from podferry.sidecar.state.prometheus import exposition

NOT_YET = Problem("there is nothing to mark", "the gate has not opened, or the pod has no checkpoints")
FINAL_STAGES = frozenset({AgentPhase.REFUSED, AgentPhase.ENDED})


def _answer(document: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")


def _wait(request: web.Request) -> float:
    try:
        seconds = float(request.query.get("wait", "0"))
    except ValueError:
        raise web.HTTPBadRequest(text="wait must be a number of seconds") from None
    return min(max(seconds, 0.0), MAX_WAIT_SECONDS)


def _wish(request: web.Request) -> FlushRequest:
    exit_code = request.query.get("exit")
    try:
        code = None if exit_code is None else int(exit_code)
    except ValueError:
        raise web.HTTPBadRequest(text="exit must be an exit code") from None
    final, ending = (request.query.get(name) == "true" for name in ("final", "ending"))
    return FlushRequest(final=final, ending=ending, exit_code=code)


class ApiServer:
    """The handlers."""

    def __init__(self, answers: AgentApi) -> None:
        self._answers, self._state = answers, answers.state

    async def status(self, _: web.Request) -> web.Response:
        """Everything."""
        self._answers.refresh()
        return _answer(self._state.status)

    async def gate(self, request: web.Request) -> web.Response:
        """Whether training may start; waits until that is settled."""

        def settled() -> bool:
            return self._state.gate().open or self._state.status.stage in FINAL_STAGES

        await self._state.wait_for(settled, _wait(request))
        self._answers.refresh()
        return _answer(self._state.gate())

    async def durable(self, request: web.Request) -> web.Response:
        """Whether all checkpoints of now are durable; waits for it."""
        if self._answers.flush is None:
            return _answer(Durability(durable=True))
        return _answer(await self._answers.flush(_wait(request), _wish(request)))

    async def done(self, request: web.Request) -> web.Response:
        """A checkpoint is whole: the trainer says so."""
        if self._answers.mark is None:
            return _answer(Marked(problems=(NOT_YET,)))
        return _answer(await self._answers.mark(request.query.get("checkpoint", "")))

    async def metrics(self, _: web.Request) -> web.Response:
        """For Prometheus."""
        self._answers.refresh()
        text = exposition(self._state.status, self._answers.timings)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})


async def serve(answers: AgentApi, listener: socket.socket) -> web.AppRunner:
    """Serve on a bound socket; the caller cleans the runner up."""
    api = ApiServer(answers)
    app = web.Application()
    app.router.add_get(STATUS_PATH, api.status)
    app.router.add_get(GATE_PATH, api.gate)
    app.router.add_post(DURABLE_PATH, api.durable)
    app.router.add_post(DONE_PATH, api.done)
    app.router.add_get(METRICS_PATH, api.metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    return runner

"""Serves the agent's API over HTTP. Contract: `podferry.contract.http_api`."""

from __future__ import annotations

import socket

import msgspec

from podferry.contract import http_api
from podferry.contract.errors import Problem
from podferry.contract.http_api import Durability, Marked
from podferry.contract.status import AgentPhase
from podferry.contract.versioned_json import encode_json
from podferry.sidecar.control.agent_api import AgentApi, FlushRequest
from podferry.sidecar.control.http_endpoint import BadRequestError, HttpEndpoint, Request, Response

NOTHING_TO_MARK = Problem(
    "there is nothing to mark", "the gate has not opened, or the pod has no checkpoints"
)
FINAL_PHASES = frozenset({AgentPhase.REFUSED, AgentPhase.ENDED})


def _json(document: msgspec.Struct) -> Response:
    return Response(encode_json(document))


def _wait_seconds(request: Request) -> float:
    try:
        seconds = float(request.query.get("wait", "0"))
    except ValueError:
        raise BadRequestError("wait must be a number of seconds") from None
    return min(max(seconds, 0.0), http_api.MAX_WAIT_SECONDS)


def _flush_request(request: Request) -> FlushRequest:
    exit_code = request.query.get("exit")
    try:
        code = None if exit_code is None else int(exit_code)
    except ValueError:
        raise BadRequestError("exit must be an exit code") from None
    flags = {name: request.query.get(name) == "true" for name in ("final", "ending", "interrupted")}
    return FlushRequest(**flags, exit_code=code)


class ApiServer:
    """The handlers."""

    def __init__(self, api: AgentApi) -> None:
        self._api, self._state = api, api.state

    async def status(self, _: Request) -> Response:
        """The status."""
        self._api.refresh()
        return _json(self._state.status)

    async def gate(self, request: Request) -> Response:
        """Whether training may start; waits until that is decided."""

        def decided() -> bool:
            return self._state.gate().open or self._state.status.phase in FINAL_PHASES

        await self._state.wait_for(decided, _wait_seconds(request))
        self._api.refresh()
        return _json(self._state.gate())

    async def durable(self, request: Request) -> Response:
        """Whether everything that exists now is durable; waits for it."""
        if self._api.flush is None:
            return _json(Durability(durable=True))
        return _json(await self._api.flush(_wait_seconds(request), _flush_request(request)))

    async def done(self, request: Request) -> Response:
        """Marks a checkpoint as complete."""
        if self._api.mark is None:
            return _json(Marked(problems=(NOTHING_TO_MARK,)))
        return _json(await self._api.mark(request.query.get("checkpoint", "")))

    async def metrics(self, _: Request) -> Response:
        """Metrics for Prometheus."""
        from prometheus_client import CONTENT_TYPE_LATEST  # noqa: PLC0415 - 50 ms that a start need not take

        from podferry.sidecar.state.prometheus import exposition  # noqa: PLC0415

        self._api.refresh()
        text = exposition(self._state.status, self._api.durations)
        return Response(text, CONTENT_TYPE_LATEST)


async def serve(api: AgentApi, listener: socket.socket) -> HttpEndpoint:
    """Serve on a bound socket; the caller cleans up."""
    server = ApiServer(api)
    endpoint = HttpEndpoint(
        {
            ("GET", http_api.STATUS_PATH): server.status,
            ("GET", http_api.GATE_PATH): server.gate,
            ("POST", http_api.DURABLE_PATH): server.durable,
            ("POST", http_api.DONE_PATH): server.done,
            ("GET", http_api.METRICS_PATH): server.metrics,
        }
    )
    await endpoint.start(listener)
    return endpoint

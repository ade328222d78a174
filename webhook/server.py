"""The HTTPS server: a thin shell around the admission decisions.

`POST /mutate` takes pods, `POST /validate` Jobs. `GET /healthz` responds while the process runs,
`GET /readyz` with 503 during shutdown.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import Callable
from typing import Protocol

import structlog
from aiohttp import web

from podferry.contract.errors import FerryError, InvalidSpec
from podferry.webhook.inject import InjectionOutcome, inject
from podferry.webhook.job_templates import template_problems
from podferry.webhook.kube import Cluster
from podferry.webhook.policy import Policy
from podferry.webhook.resolve import Namespace, opted_in
from podferry.webhook.review import AdmissionRequest, allow, decode_review, deny

log = structlog.get_logger(__name__)

MAX_REVIEW_BYTES = 8 * 1024**2
"""An object in etcd has at most 1.5 MiB, and a review may contain it twice."""
LABEL_CACHE_SECONDS = 30.0
"""How long a namespace's labels are cached."""


class Namespaces(Protocol):
    """A source of namespace labels."""

    async def find(self, name: str) -> Namespace:
        """The namespace; without labels if they cannot be read."""


class UnknownNamespaces:
    """Has no labels: outside a cluster."""

    async def find(self, name: str) -> Namespace:
        """See `Namespaces`."""
        return Namespace(name)


class ClusterNamespaces:
    """Reads labels from the API server, with a cache."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._clock = cluster, clock
        self._cache: dict[str, tuple[float, Namespace]] = {}

    async def find(self, name: str) -> Namespace:
        """See `Namespaces`."""
        read_at, namespace = self._cache.get(name, (-math.inf, Namespace(name)))
        if self._clock() - read_at < LABEL_CACHE_SECONDS:
            return namespace
        try:
            namespace = Namespace(name, await self._cluster.namespace_labels(name))
        except FerryError as error:
            # Without labels, the namespace counts as unrestricted: Pod Security admission still applies.
            log.warning(
                "namespace labels unknown", namespace=name, problems=[str(one) for one in error.problems]
            )
            return namespace
        self._cache[name] = (self._clock(), namespace)
        return namespace


class Webhook:
    """The request handlers; while `shutting_down`, it reports itself as not ready."""

    def __init__(self, policy: Callable[[], Policy], namespaces: Namespaces) -> None:
        """Set up the handlers; `policy` returns the current policy."""
        self._policy, self._namespaces = policy, namespaces
        self.shutting_down = False

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(client_max_size=MAX_REVIEW_BYTES)
        app.router.add_post("/mutate", self.mutate)
        app.router.add_post("/validate", self.validate)
        app.router.add_get("/healthz", self.healthz)
        app.router.add_get("/readyz", self.readyz)
        return app

    async def mutate(self, request: web.Request) -> web.Response:
        """Review a pod."""
        review = await _review(request)
        pod = review.object or {}
        if not opted_in(pod):
            return _json(allow(review.uid))
        decision = inject(pod, await self._namespaces.find(review.namespace), self._policy())
        _log_decision(review, decision.outcome, decision.problems)
        if decision.outcome is InjectionOutcome.DENIED:
            message = "podferry: " + "\n".join(map(str, decision.problems))
            return _json(deny(review.uid, message, decision.warnings))
        return _json(allow(review.uid, decision.patch, decision.warnings))

    async def validate(self, request: web.Request) -> web.Response:
        """Review a Job."""
        review = await _review(request)
        namespace = await self._namespaces.find(review.namespace)
        problems = template_problems(review.object or {}, namespace, self._policy())
        if not problems:
            return _json(allow(review.uid))
        _log_decision(review, InjectionOutcome.DENIED, problems)
        return _json(deny(review.uid, "podferry: " + "\n".join(map(str, problems))))

    async def healthz(self, _: web.Request) -> web.Response:
        """Respond while the process runs."""
        return web.Response(text="ok")

    async def readyz(self, _: web.Request) -> web.Response:
        """Respond with 503 during shutdown."""
        return (
            web.Response(status=503, text="shutting down") if self.shutting_down else web.Response(text="ok")
        )


async def serve(webhook: Webhook, host: str, port: int, context: ssl.SSLContext) -> web.AppRunner:
    """Start listening; the caller cleans up the runner."""
    runner = web.AppRunner(webhook.application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port, ssl_context=context).start()
    return runner


async def drain_requests(webhook: Webhook, seconds: float) -> None:
    """Report not ready, and keep serving until Services have stopped sending requests."""
    webhook.shutting_down = True
    await asyncio.sleep(seconds)


async def _review(request: web.Request) -> AdmissionRequest:
    try:
        return decode_review(await request.read())
    except InvalidSpec as error:
        raise web.HTTPBadRequest(text=str(error)) from error


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


def _log_decision(review: AdmissionRequest, outcome: InjectionOutcome, problems: tuple[object, ...]) -> None:
    metadata = (review.object or {}).get("metadata") or {}
    log.info(
        "decided",
        outcome=outcome,
        namespace=review.namespace,
        name=review.name or metadata.get("name") or metadata.get("generateName"),
        kind=review.kind.kind,
        dry_run=bool(review.dry_run),
        problems=[str(problem) for problem in problems],
    )

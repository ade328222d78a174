"""The HTTPS server: a thin shell that hands reviews to the core and its answers back.

`POST /mutate` takes pods and `POST /validate` Jobs. `GET /healthz` says that the process answers, and
`GET /readyz` that it takes requests: 503 while it ends.
"""

from __future__ import annotations

import asyncio
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
"""Bytes: an object is 1.5 MiB at most in etcd, and a review may hold it twice."""
LABEL_CACHE_SECONDS = 30.0
"""Seconds that a namespace's labels are remembered."""


class Namespaces(Protocol):
    """Where the labels of namespaces come from."""

    async def find(self, name: str) -> Namespace:
        """The namespace, without labels where they cannot be had."""


class UnknownNamespaces:
    """Knows no labels: outside a cluster."""

    async def find(self, name: str) -> Namespace:
        """See `Namespaces`."""
        return Namespace(name)


class ClusterNamespaces:
    """Asks the API server, and remembers for a while."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._clock = cluster, clock
        self._known: dict[str, tuple[float, Namespace]] = {}

    async def find(self, name: str) -> Namespace:
        """See `Namespaces`."""
        at, known = self._known.get(name, (0.0, Namespace(name)))
        if name in self._known and self._clock() - at < LABEL_CACHE_SECONDS:
            return known
        try:
            known = Namespace(name, await self._cluster.namespace_labels(name))
        except FerryError as error:
            # Without labels a pod is judged as in an unrestricted namespace: Pod Security still has its say.
            log.warning("labels not known", namespace=name, problems=[str(one) for one in error.problems])
            return known
        self._known[name] = (self._clock(), known)
        return known


class Webhook:
    """The handlers.

    Attributes:
        ending: Whether it takes no new requests.
    """

    def __init__(self, policy: Callable[[], Policy], namespaces: Namespaces) -> None:
        """Handlers.

        Args:
            policy: The policy of now.
            namespaces: Where their labels come from.
        """
        self._policy, self._namespaces = policy, namespaces
        self.ending = False

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(client_max_size=MAX_REVIEW_BYTES)
        app.router.add_post("/mutate", self.mutate)
        app.router.add_post("/validate", self.validate)
        app.router.add_get("/healthz", self.healthz)
        app.router.add_get("/readyz", self.readyz)
        return app

    async def mutate(self, request: web.Request) -> web.Response:
        """A pod's review."""
        review = await _review(request)
        pod = review.object or {}
        if not opted_in(pod):
            return _json(allow(review.uid))
        decision = inject(pod, await self._namespaces.find(review.namespace), self._policy())
        _tell(review, decision.outcome, decision.problems)
        if decision.outcome is InjectionOutcome.DENIED:
            message = "podferry: " + "\n".join(map(str, decision.problems))
            return _json(deny(review.uid, message, decision.warnings))
        return _json(allow(review.uid, decision.patch, decision.warnings))

    async def validate(self, request: web.Request) -> web.Response:
        """A Job's review."""
        review = await _review(request)
        namespace = await self._namespaces.find(review.namespace)
        problems = template_problems(review.object or {}, namespace, self._policy())
        if not problems:
            return _json(allow(review.uid))
        _tell(review, InjectionOutcome.DENIED, problems)
        return _json(deny(review.uid, "podferry: " + "\n".join(map(str, problems))))

    async def healthz(self, _: web.Request) -> web.Response:
        """The process answers."""
        return web.Response(text="ok")

    async def readyz(self, _: web.Request) -> web.Response:
        """Whether it takes requests."""
        return web.Response(status=503, text="ending") if self.ending else web.Response(text="ok")


async def serve(webhook: Webhook, host: str, port: int, context: ssl.SSLContext) -> web.AppRunner:
    """Listen; the caller cleans the runner up."""
    runner = web.AppRunner(webhook.application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port, ssl_context=context).start()
    return runner


async def drain_requests(webhook: Webhook, seconds: float) -> None:
    """Say that no more requests should come, and serve those that still do until the Service knows."""
    webhook.ending = True
    await asyncio.sleep(seconds)


async def _review(request: web.Request) -> AdmissionRequest:
    try:
        return decode_review(await request.read())
    except InvalidSpec as error:
        raise web.HTTPBadRequest(text=str(error)) from error


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


def _tell(review: AdmissionRequest, outcome: InjectionOutcome, problems: tuple[object, ...]) -> None:
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

"""The HTTP handlers: a thin shell around the admission decisions.

`POST /mutate` takes pods, `POST /validate` workloads, `POST /validate-policy` the policy's ConfigMap.
`GET /healthz` responds while the process runs, `GET /readyz` with 503 and the reasons if reviews would
fail. What is no review gets 4xx with a message.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from aiohttp import web
from aiohttp.typedefs import Handler

from podferry.contract.errors import InvalidSpec, Problem
from podferry.webhook.admission.decide import concerns, decide
from podferry.webhook.admission.decision_log import log_decision
from podferry.webhook.admission.job_templates import review_templates
from podferry.webhook.admission.metrics import WebhookMetrics
from podferry.webhook.admission.review import AdmissionRequest, allow, decode_review, deny
from podferry.webhook.cluster.namespaces import Namespaces
from podferry.webhook.injection.inject import UNTOUCHED, Decision, InjectionOutcome
from podferry.webhook.pod.pod_schema import check_types
from podferry.webhook.pod.refusal_text import refusal_text
from podferry.webhook.pod.stamp import Signer
from podferry.webhook.policy.policy import Policy
from podferry.webhook.policy.policy_review import policy_problems

MAX_REVIEW_BYTES = 8 * 1024**2
"""An object in etcd has at most 1.5 MiB, and a review may contain it twice."""
POD = ("", "v1", "Pod")


class Webhook:
    """The request handlers.

    Attributes:
        metrics: What they count.
        shutting_down: Set from SIGTERM on; not ready then.
    """

    def __init__(
        self,
        policy: Callable[[], Policy],
        namespaces: Namespaces,
        signer: Callable[[], Signer],
        obstacles: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Set up the handlers.

        `policy` returns the current policy, `signer` signs at this moment, `obstacles` are reasons why
        reviews would fail, such as an expired certificate.
        """
        self._policy, self._namespaces, self._signer = policy, namespaces, signer
        self._obstacles = obstacles
        self.metrics = WebhookMetrics()
        self.shutting_down = False

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(client_max_size=MAX_REVIEW_BYTES, middlewares=[self._count_rejected])
        app.router.add_post("/mutate", self.mutate)
        app.router.add_post("/validate", self.validate)
        app.router.add_post("/validate-policy", self.validate_policy)
        app.router.add_get("/healthz", self.healthz)
        app.router.add_get("/readyz", self.readyz)
        return app

    def not_ready(self) -> tuple[str, ...]:
        """Why reviews would fail here; empty if ready."""
        return (*(["shutting down"] if self.shutting_down else []), *self._obstacles())

    async def mutate(self, request: web.Request) -> web.Response:
        """Review a pod."""
        review, started = await _review(request), time.perf_counter()
        decision = await self._decision(review)
        self._finish("mutate", review, decision, started)
        if decision.outcome is InjectionOutcome.DENIED:
            return _denied(review, decision)
        return _json(allow(review.uid, decision.patch, decision.warnings))

    async def _decision(self, review: AdmissionRequest) -> Decision:
        pod, policy = review.object, self._policy()
        if pod is None:  # there is nothing to inject, as in a deletion
            return UNTOUCHED
        with _refusing_malformed():
            _check_kind(review)
            check_types(pod)
        if not concerns(pod, policy):
            return UNTOUCHED
        return decide(pod, await self._namespaces.find(review.namespace), policy, self._signer(), review.uid)

    async def validate(self, request: web.Request) -> web.Response:
        """Review a Job or another workload with pod templates."""
        review, started = await _review(request), time.perf_counter()
        namespace = await self._namespaces.find(review.namespace)
        with _refusing_malformed():
            found = review_templates(review.object or {}, namespace, self._policy(), self._signer())
        return self._validated("validate", review, found.problems, started, found.warnings)

    async def validate_policy(self, request: web.Request) -> web.Response:
        """Review the policy's ConfigMap."""
        review, started = await _review(request), time.perf_counter()
        with _refusing_malformed():
            problems = policy_problems(review.object or {})
        return self._validated("validate-policy", review, problems, started)

    def _validated(
        self,
        path: str,
        review: AdmissionRequest,
        problems: tuple[Problem, ...],
        started: float,
        warnings: tuple[str, ...] = (),
    ) -> web.Response:
        outcome = InjectionOutcome.DENIED if problems else InjectionOutcome.UNTOUCHED
        decision = Decision(outcome, warnings=warnings, problems=problems)
        self._finish(path, review, decision, started)
        return _denied(review, decision) if problems else _json(allow(review.uid, warnings=warnings))

    def _finish(self, path: str, review: AdmissionRequest, decision: Decision, started: float) -> None:
        self.metrics.count_review(path, decision.outcome, time.perf_counter() - started)
        self.metrics.warnings.inc(len(decision.warnings))
        if decision.outcome is not InjectionOutcome.UNTOUCHED:
            # The client does not wait for the log: its write may block.
            asyncio.get_running_loop().call_soon(log_decision, review, decision)

    async def healthz(self, _: web.Request) -> web.Response:
        """Respond while the process runs."""
        return web.Response(text="ok")

    async def readyz(self, _: web.Request) -> web.Response:
        """Respond with 503 and the reasons if reviews would fail."""
        reasons = self.not_ready()
        return web.Response(status=503, text="\n".join(reasons)) if reasons else web.Response(text="ok")

    @web.middleware
    async def _count_rejected(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            self.metrics.rejected.labels(str(error.status)).inc()
            raise


async def _review(request: web.Request) -> AdmissionRequest:
    if encoding := request.headers.get("Content-Encoding"):
        text = f"the body is compressed (Content-Encoding: {encoding}); send it as it is"
        raise web.HTTPUnsupportedMediaType(text=text)
    with _refusing_malformed():
        return decode_review(await request.read())


def _check_kind(review: AdmissionRequest) -> None:
    found = (review.kind.group, review.kind.version, review.kind.kind)
    if found != POD:
        remedy = "Correct the rules of the webhook configuration"
        raise InvalidSpec.of("only pods are injected", "/".join(part for part in found if part), remedy)


@contextmanager
def _refusing_malformed() -> Iterator[None]:
    """Answer with 400 and the reason, which the API server shows, instead of 500."""
    try:
        yield
    except InvalidSpec as error:
        raise web.HTTPBadRequest(text=str(error)) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # Templates of custom resources may have fields of any type.
        text = f"the object has a field of another type than expected ({type(error).__name__}: {error})"
        raise web.HTTPBadRequest(text=text) from error


def _denied(review: AdmissionRequest, decision: Decision) -> web.Response:
    message = "podferry: " + refusal_text(decision.problems)
    return _json(deny(review.uid, message, decision.warnings))


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")

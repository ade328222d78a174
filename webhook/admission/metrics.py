"""Prometheus metrics of the webhook, and the plain HTTP port that serves them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

SECONDS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""A decision takes half a millisecond; an API server waits for 5 s."""
NAMESPACE = "podferry_webhook"


class WebhookMetrics:
    """What the webhook counts and measures.

    Attributes:
        warnings: Warnings that were returned to clients.
        rejected: Requests that were no valid review, by HTTP status.
        policy_read: When the current policy was read, Unix seconds.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        count = partial(Counter, namespace=NAMESPACE, registry=self._registry)
        self._reviews = count("reviews", "Reviews, by outcome", ["path", "outcome"])
        self._seconds = Histogram(
            "review_seconds",
            "Time from a complete request to the decision",
            namespace=NAMESPACE,
            registry=self._registry,
            buckets=SECONDS_BUCKETS,
        )
        self.warnings = count("warnings", "Warnings returned to clients")
        self.rejected = count("rejected_requests", "Requests that were no valid review", ["status"])
        self.policy_read = self._gauge("policy_read_timestamp_seconds", "When the current policy was read")

    def count_review(self, path: str, outcome: str, seconds: float) -> None:
        """Count a review and the time that the decision took."""
        self._reviews.labels(path, outcome).inc()
        self._seconds.observe(seconds)

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Add a gauge whose value is computed at every scrape."""
        self._gauge(name, text).set_function(value)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, namespace=NAMESPACE, registry=self._registry)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


async def serve_metrics(metrics: WebhookMetrics, host: str, port: int) -> web.AppRunner:
    """Serve `GET /metrics` in plain HTTP; the caller cleans up the runner."""

    async def respond(_: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.router.add_get("/metrics", respond)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner

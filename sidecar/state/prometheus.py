"""Prometheus metrics of the agent: its status as gauges and counters, and histograms of durations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from podferry.contract.status import (
    AgentPhase,
    CheckpointStatus,
    DatasetStatus,
    OutputStatus,
    Status,
)
from podferry.sidecar.state.durations import DURABLE_BUCKETS, Durations
from podferry.sidecar.state.transfer_counters import FIRST_BYTE_BUCKETS

DATASET_GAUGES: tuple[tuple[str, str, Callable[[DatasetStatus], float]], ...] = (
    ("files", "Files in the dataset", lambda one: one.files),
    ("bytes", "Size of the dataset", lambda one: one.bytes),
    ("done_files", "Complete files in the staging directory", lambda one: one.files_done),
    ("done_bytes", "Bytes in the staging directory", lambda one: one.bytes_done),
    ("prefetch_seconds", "Duration of the prefetch", lambda one: one.seconds),
    (
        "bytes_per_second",
        "Download rate over the last 5 s; the average once finished",
        lambda one: one.rate,
    ),
    ("connections", "Open connections to the store", lambda one: one.transfer.connections),
    ("volume_bytes", "Size of the staging directory's file system", lambda one: one.volume_bytes),
    ("volume_free_bytes", "Free space in the staging directory's file system", lambda one: one.volume_free),
)
DATASET_COUNTERS: tuple[tuple[str, str, Callable[[DatasetStatus], float]], ...] = (
    ("received_bytes", "Bytes downloaded, including retries", lambda one: one.transfer.bytes),
    ("retries", "Requests sent again", lambda one: one.transfer.retries),
    (
        "handed_over",
        "Requests that fell back from the connection pool to the store's own client",
        lambda one: one.transfer.handed_over,
    ),
)
"""Name after `podferry_dataset_`, help, and value. The dataset's name is a label."""


class StatusCollector(Collector):
    """Reads the status and the durations at every scrape."""

    def __init__(self, status: Status, durations: Durations) -> None:
        self._status, self._durations = status, durations

    def collect(self) -> Iterable[Metric]:
        """See `Collector`."""
        status = self._status
        phases = GaugeMetricFamily("podferry_stage", "Current phase of the agent", labels=["stage"])
        for phase in AgentPhase:
            phases.add_metric([phase.value], float(phase is status.stage))
        yield phases
        yield CounterMetricFamily("podferry_worker_starts", "Starts of the worker process", status.starts)
        if status.datasets:
            yield from _datasets(status.datasets)
        if status.checkpoints is not None:
            yield from _checkpoints(status.checkpoints, time.time())
        if status.outputs is not None:
            yield from _outputs(status.outputs)
        yield HistogramMetricFamily(
            "podferry_checkpoint_durable_seconds",
            "Time from a complete checkpoint to its commit",
            _buckets(DURABLE_BUCKETS, self._durations.counts),
            self._durations.total_seconds,
        )


def exposition(status: Status, durations: Durations) -> bytes:
    """All metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(status, durations))
    return generate_latest(registry)


def _datasets(datasets: Sequence[DatasetStatus]) -> Iterator[Metric]:
    """One family per value, one sample per dataset; the unnamed dataset's label is empty."""
    label = ["dataset"]
    for name, text, value in DATASET_GAUGES:
        gauge = GaugeMetricFamily(f"podferry_dataset_{name}", text, labels=label)
        for one in datasets:
            gauge.add_metric([one.name], value(one))
        yield gauge
    for name, text, value in DATASET_COUNTERS:
        counter = CounterMetricFamily(f"podferry_dataset_{name}", text, labels=label)
        for one in datasets:
            counter.add_metric([one.name], value(one))
        yield counter
    first_byte = HistogramMetricFamily(
        "podferry_dataset_first_byte_seconds",
        "Time from a request to the first byte of its response",
        labels=label,
    )
    for one in datasets:
        counts = one.transfer.first_bytes or [0] * (len(FIRST_BYTE_BUCKETS) + 1)
        buckets = _buckets(FIRST_BYTE_BUCKETS, counts)
        first_byte.add_metric([one.name], buckets, one.transfer.first_byte_seconds)
    yield first_byte


def _buckets(bounds: Iterable[float], counts: Iterable[int]) -> list[tuple[str, float]]:
    """Cumulative counts, as Prometheus expects them."""
    return list(zip([*map(str, bounds), "+Inf"], accumulate(counts), strict=True))


def _checkpoints(status: CheckpointStatus, now: float) -> Iterator[Metric]:
    last = status.durable[-1] if status.durable else None
    age = max(now - status.pending_since, 0.0) if status.pending_since is not None else 0.0
    counters = (
        ("checkpoints_durable", "Checkpoints made durable", len(status.durable)),
        ("checkpoint_sent_bytes", "Bytes uploaded, including retries", status.uploaded_bytes),
        (
            "checkpoint_referenced_bytes",
            "Bytes deduplicated against earlier checkpoints",
            status.referenced_bytes,
        ),
    )
    gauges = (
        ("backlog", "Checkpoints not durable yet", len(status.pending)),
        ("backlog_bytes", "Bytes of checkpoints not durable yet", status.pending_bytes),
        ("backlog_age_seconds", "Age of the oldest complete checkpoint that is not durable yet", age),
        ("upload_bytes_per_second", "Throughput of the current or last upload", status.upload_rate),
        ("write_seconds", "Time the trainer took to write the newest checkpoint", status.write_seconds),
        ("problems", "Current problems with checkpoints", len(status.problems)),
        ("fenced", "1 if another agent has taken over the lineage", float(status.fenced)),
    )
    for name, text, count in counters:
        yield CounterMetricFamily(f"podferry_{name}", text, count)
    for name, text, value in gauges:
        yield GaugeMetricFamily(f"podferry_checkpoint_{name}", text, value)
    if last is not None:
        yield GaugeMetricFamily(
            "podferry_checkpoint_durable_timestamp_seconds",
            "Unix time at which the last checkpoint became durable",
            last.durable_at,
        )
        if last.step is not None:
            yield GaugeMetricFamily(
                "podferry_checkpoint_durable_step", "Step of the last durable checkpoint", last.step
            )


def _outputs(status: OutputStatus) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "podferry_output_files", "Outputs uploaded in their current version", status.files
    )
    yield GaugeMetricFamily("podferry_output_bytes", "Bytes of these outputs", status.bytes)
    yield GaugeMetricFamily("podferry_output_problems", "Current problems with outputs", len(status.problems))

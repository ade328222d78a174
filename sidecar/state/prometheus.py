"""Prometheus metrics of the agent: its status as gauges and counters, and histograms of durations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from podferry.contract.status import (
    AgentPhase,
    CheckpointStatus,
    DatasetStatus,
    DurableCheckpoint,
    OutputStatus,
    Status,
    newest_durable,
)
from podferry.sidecar.state.durations import DURABLE_BUCKETS, Durations
from podferry.sidecar.state.transfer_counters import FIRST_BYTE_BUCKETS

GAUGE, COUNTER = GaugeMetricFamily, CounterMetricFamily
Family = type[GaugeMetricFamily] | type[CounterMetricFamily]

DATASET_METRICS: tuple[tuple[Family, str, str, Callable[[DatasetStatus], float]], ...] = (
    (GAUGE, "files", "Files in the dataset", lambda one: one.files),
    (GAUGE, "bytes", "Size of the dataset", lambda one: one.bytes),
    (GAUGE, "done_files", "Complete files in the staging directory", lambda one: one.files_done),
    (GAUGE, "done_bytes", "Bytes in the staging directory", lambda one: one.bytes_done),
    (GAUGE, "prefetch_seconds", "Duration of the prefetch", lambda one: one.seconds),
    (
        GAUGE,
        "bytes_per_second",
        "Download rate over the last 5 s; the average once finished",
        lambda one: one.rate,
    ),
    (GAUGE, "connections", "Open connections to the store", lambda one: one.transfer.connections),
    (GAUGE, "volume_bytes", "Size of the staging file system", lambda one: one.volume_bytes),
    (GAUGE, "volume_free_bytes", "Free space in the staging file system", lambda one: one.volume_free),
    (COUNTER, "received_bytes", "Bytes downloaded, including retries", lambda one: one.transfer.bytes),
    (COUNTER, "retries", "Requests sent again", lambda one: one.transfer.retries),
    (
        COUNTER,
        "handed_over",
        "Requests that fell back to the store's own client",
        lambda one: one.transfer.handed_over,
    ),
)
"""Kind, name after `podferry_dataset_`, help, and value. The dataset's name is a label."""

CHECKPOINT_METRICS: tuple[tuple[Family, str, str, Callable[[CheckpointStatus], float]], ...] = (
    (COUNTER, "s_durable", "Checkpoints made durable", lambda one: one.durable_count),
    (GAUGE, "_backlog", "Checkpoints not durable yet", lambda one: len(one.pending)),
    (GAUGE, "_backlog_bytes", "Bytes of checkpoints not durable yet", lambda one: one.pending_bytes),
    (
        GAUGE,
        "_set_apart",
        "Checkpoints that the destination refuses for good, one by one",
        lambda one: len(one.set_apart),
    ),
    (COUNTER, "_sent_bytes", "Bytes uploaded, including retries", lambda one: one.uploaded_bytes),
    (
        COUNTER,
        "_referenced_bytes",
        "Bytes deduplicated against earlier checkpoints",
        lambda one: one.referenced_bytes,
    ),
    (
        GAUGE,
        "_upload_bytes_per_second",
        "Throughput of the current or last upload",
        lambda one: one.upload_rate,
    ),
    (
        GAUGE,
        "_write_seconds",
        "Time the trainer took to write the newest checkpoint",
        lambda one: one.write_seconds,
    ),
    (GAUGE, "_problems", "Current problems with checkpoints", lambda one: len(one.problems)),
    (GAUGE, "_ignored_names", "Names that are not uploaded", lambda one: one.ignored_count),
    (GAUGE, "_fenced", "1 if another agent has taken over the lineage", lambda one: float(one.fenced)),
    (GAUGE, "_rival", "1 if another agent has started in the lineage", lambda one: float(bool(one.rival))),
)
"""Kind, name after `podferry_checkpoint`, help, and value."""


class StatusCollector(Collector):
    """Reads the status and the durations at every scrape."""

    def __init__(self, status: Status, durations: Durations) -> None:
        self._status, self._durations = status, durations

    def collect(self) -> Iterable[Metric]:
        """See `Collector`."""
        status = self._status
        phases = GAUGE("podferry_stage", "Current phase of the agent", labels=["stage"])
        for phase in AgentPhase:
            phases.add_metric([phase.value], float(phase is status.phase))
        yield phases
        yield COUNTER("podferry_worker_starts", "Starts of the worker process", status.starts)
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
    for kind, name, text, value in DATASET_METRICS:
        family = kind(f"podferry_dataset_{name}", text, labels=label)
        for one in datasets:
            family.add_metric([one.name], value(one))
        yield family
    text = "Time from a request to the first byte of its response"
    first_byte = HistogramMetricFamily("podferry_dataset_first_byte_seconds", text, labels=label)
    for one in datasets:
        counts = one.transfer.first_bytes or [0] * (len(FIRST_BYTE_BUCKETS) + 1)
        buckets = _buckets(FIRST_BYTE_BUCKETS, counts)
        first_byte.add_metric([one.name], buckets, one.transfer.first_byte_seconds)
    yield first_byte


def _buckets(bounds: Iterable[float], counts: Iterable[int]) -> list[tuple[str, float]]:
    """Cumulative counts, as Prometheus expects them."""
    return list(zip([*map(str, bounds), "+Inf"], accumulate(counts), strict=True))


def _checkpoints(status: CheckpointStatus, now: float) -> Iterator[Metric]:
    for kind, name, text, value in CHECKPOINT_METRICS:
        yield kind(f"podferry_checkpoint{name}", text, value(status))
    text = "Age of the oldest complete checkpoint that is not durable yet"
    age = max(now - status.pending_since, 0.0) if status.pending_since is not None else 0.0
    yield GAUGE("podferry_checkpoint_backlog_age_seconds", text, age)
    last = newest_durable(status.durable)
    if last is not None:
        yield from _last_durable(last)


def _last_durable(last: DurableCheckpoint) -> Iterator[Metric]:
    prefix = "podferry_checkpoint"
    yield GAUGE(f"{prefix}_durable_timestamp_seconds", "Unix time of the last commit", last.durable_at)
    text = "1 if the last durable checkpoint is doubtful"
    yield GAUGE(f"{prefix}_last_doubtful", text, float(bool(last.doubts)))
    if last.step is not None:
        yield GAUGE(f"{prefix}_durable_step", "Step of the last durable checkpoint", last.step)


def _outputs(status: OutputStatus) -> Iterator[Metric]:
    yield GAUGE("podferry_output_files", "Outputs uploaded in their current version", status.files)
    yield GAUGE("podferry_output_bytes", "Bytes of these outputs", status.bytes)
    yield GAUGE("podferry_output_problems", "Current problems with outputs", len(status.problems))

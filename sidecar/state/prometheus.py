"""What the agent shows to Prometheus: its status as gauges and counters, and how long durability takes."""

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

from podferry.contract.status import AgentPhase, CheckpointStatus, DatasetStatus, OutputStatus, Status
from podferry.sidecar.state.durations import SECONDS, Durations
from podferry.sidecar.state.transfer_counters import FIRST_BYTE

DATASET_GAUGES: tuple[tuple[str, str, Callable[[DatasetStatus], float]], ...] = (
    ("files", "Files of the dataset", lambda one: one.files),
    ("bytes", "Bytes of the dataset", lambda one: one.bytes),
    ("done_files", "Files that are whole here", lambda one: one.files_done),
    ("done_bytes", "Bytes that are here", lambda one: one.bytes_done),
    ("prefetch_seconds", "What prefetching took", lambda one: one.seconds),
    ("bytes_per_second", "Of the last seconds, in the end of the whole prefetch", lambda one: one.rate),
    ("connections", "Open to the store by the lean lane", lambda one: one.transfer.connections),
    ("volume_bytes", "Size of the file system that holds the stage", lambda one: one.volume_bytes),
    ("volume_free_bytes", "What of it is free", lambda one: one.volume_free),
)
DATASET_COUNTERS: tuple[tuple[str, str, Callable[[DatasetStatus], float]], ...] = (
    ("received_bytes", "Bytes fetched, those fetched again included", lambda one: one.transfer.bytes),
    ("retries", "Requests that were sent again", lambda one: one.transfer.retries),
    (
        "handed_over",
        "Requests that the lean lane gave to the store's own client",
        lambda one: one.transfer.handed_over,
    ),
)
"""Name behind `podferry_dataset_`, help, and where the figure is. Each has the dataset's name as a label."""


class StatusCollector(Collector):
    """Reads a status and timings at every scrape."""

    def __init__(self, status: Status, timings: Durations) -> None:
        self._status, self._timings = status, timings

    def collect(self) -> Iterable[Metric]:
        """See `Collector`."""
        status = self._status
        stages = GaugeMetricFamily("podferry_stage", "How far the agent is", labels=["stage"])
        for stage in AgentPhase:
            stages.add_metric([stage.value], float(stage is status.stage))
        yield stages
        yield CounterMetricFamily("podferry_worker_starts", "Starts of the worker", status.starts)
        if status.datasets:
            yield from _datasets(status.datasets)
        if status.checkpoints is not None:
            yield from _checkpoints(status.checkpoints, time.time())
        if status.outputs is not None:
            yield from _outputs(status.outputs)
        yield _durable(self._timings)


def exposition(status: Status, timings: Durations) -> bytes:
    """Everything in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(status, timings))
    return generate_latest(registry)


def _durable(timings: Durations) -> Metric:
    return HistogramMetricFamily(
        "podferry_checkpoint_durable_seconds",
        "From a checkpoint being found whole to its commit",
        _buckets(SECONDS, timings.counts),
        timings.seconds,
    )


def _datasets(datasets: Sequence[DatasetStatus]) -> Iterator[Metric]:
    """One family a figure, one sample a dataset; the label of the one without a name is empty."""
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
    first = HistogramMetricFamily(
        "podferry_dataset_first_byte_seconds", "From a request to the first byte of its answer", labels=label
    )
    for one in datasets:
        counts = one.transfer.first_bytes or [0] * (len(FIRST_BYTE) + 1)
        first.add_metric([one.name], _buckets(FIRST_BYTE, counts), one.transfer.first_byte_seconds)
    yield first


def _buckets(bounds: Iterable[float], counts: Iterable[int]) -> list[tuple[str, float]]:
    """Counts up to each bound, as Prometheus has them."""
    return list(zip([*map(str, bounds), "+Inf"], accumulate(counts), strict=True))


def _checkpoints(status: CheckpointStatus, now: float) -> Iterator[Metric]:
    last = status.durable[-1] if status.durable else None
    age = max(now - status.pending_since, 0.0) if status.pending_since is not None else 0.0
    yield CounterMetricFamily("podferry_checkpoints_durable", "Checkpoints made durable", len(status.durable))
    yield GaugeMetricFamily("podferry_checkpoint_backlog", "Checkpoints not durable yet", len(status.pending))
    yield GaugeMetricFamily(
        "podferry_checkpoint_backlog_bytes", "Bytes of checkpoints not durable yet", status.pending_bytes
    )
    yield GaugeMetricFamily(
        "podferry_checkpoint_backlog_age_seconds", "Since the oldest that is not durable became whole", age
    )
    yield CounterMetricFamily("podferry_checkpoint_sent_bytes", "Bytes uploaded", status.uploaded_bytes)
    yield CounterMetricFamily(
        "podferry_checkpoint_referenced_bytes",
        "Bytes not uploaded since they lie there",
        status.referenced_bytes,
    )
    yield GaugeMetricFamily(
        "podferry_checkpoint_upload_bytes_per_second",
        "Of the upload in progress, or of the last one",
        status.upload_rate,
    )
    yield GaugeMetricFamily(
        "podferry_checkpoint_write_seconds", "What the trainer took for the newest", status.write_seconds
    )
    yield GaugeMetricFamily(
        "podferry_checkpoint_problems", "What is wrong with checkpoints now", len(status.problems)
    )
    yield GaugeMetricFamily(
        "podferry_checkpoint_fenced", "Another agent writes this lineage", float(status.fenced)
    )
    if last is not None:
        yield GaugeMetricFamily(
            "podferry_checkpoint_durable_timestamp_seconds", "When the last became durable", last.durable_at
        )
        if last.step is not None:
            yield GaugeMetricFamily("podferry_checkpoint_durable_step", "Step of the last one", last.step)


def _outputs(status: OutputStatus) -> Iterator[Metric]:
    yield GaugeMetricFamily("podferry_output_files", "Outputs uploaded as they are", status.files)
    yield GaugeMetricFamily("podferry_output_bytes", "Bytes of outputs uploaded as they are", status.bytes)
    yield GaugeMetricFamily(
        "podferry_output_problems", "What is wrong with outputs now", len(status.problems)
    )

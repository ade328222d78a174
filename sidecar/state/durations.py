"""A histogram of the time that checkpoints take to become durable."""

from __future__ import annotations

from bisect import bisect_left

DURABLE_BUCKETS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds in seconds: from a small file to a checkpoint of 30 GiB at 50 MiB/s."""


class Durations:
    """Counts checkpoints by the time that they took; the last bucket is for those above all bounds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(DURABLE_BUCKETS) + 1)
        self.total_seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count a checkpoint that became durable `seconds` after it was complete."""
        self.counts[bisect_left(DURABLE_BUCKETS, seconds)] += 1
        self.total_seconds += seconds

"""How long things took, as counts: what a status cannot tell afterwards."""

from __future__ import annotations

from bisect import bisect_left

SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the histogram: from a small file to a checkpoint of 30 GiB at 50 MiB/s."""


class Durations:
    """Counts checkpoints by how long they took to become durable.

    Attributes:
        counts: How many took up to each of `SECONDS` and longer than the bound before; last, those over all.
        seconds: What all took together.
    """

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.seconds = 0.0

    def durable(self, seconds: float) -> None:
        """A checkpoint has become durable, so long after it was whole."""
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.seconds += seconds

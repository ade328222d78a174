"""Counters of a prefetch: plain numbers that the hot path increments."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

import msgspec

from podferry.contract.status import Transfer

FIRST_BYTE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds: from a server on this machine to one about to be given up."""
WINDOW_SECONDS = 5.0
"""Time over which a rate is measured: long enough to be steady, short enough to show a stall."""
MAX_SAMPLES = 50
"""Samples in a window."""


def _zeros() -> list[int]:
    return [0] * (len(FIRST_BYTE_BUCKETS) + 1)


class TransferCounters(Transfer):
    """Counts one dataset's prefetch in one thread. It is part of the status: nothing is copied.

    A worker process has counters of its own and sends what `take` returns; the agent adds it with `add`.
    """

    first_bytes: list[int] = msgspec.field(default_factory=_zeros)

    def first_byte(self, seconds: float) -> None:
        """Count a response whose first byte came `seconds` after its request."""
        self.first_bytes[bisect_left(FIRST_BYTE_BUCKETS, seconds)] += 1
        self.first_byte_seconds += seconds

    def advance(self, files: int, count: int) -> None:
        """Count complete files and received bytes."""
        self.files += files
        self.bytes += count

    def take(self) -> TransferCounters:
        """What was counted since the last call; for `connections`, the change."""
        taken = TransferCounters(**msgspec.structs.asdict(self))
        for name in SUMMED_FIELDS:
            setattr(self, name, 0)
        self.first_bytes = _zeros()
        return taken

    def add(self, other: Transfer) -> None:
        """Add the counts of another process."""
        for name in SUMMED_FIELDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for index, count in enumerate(other.first_bytes):
            self.first_bytes[index] += count


SUMMED_FIELDS = tuple(
    name for name in TransferCounters.__struct_fields__ if name not in {"first_bytes", "why"}
)
"""All numbers except the histogram."""


class RateMeter:
    """Measures how fast a count grows, over the last seconds."""

    def __init__(self, window: float = WINDOW_SECONDS) -> None:
        self._window = window
        self._samples: deque[tuple[float, int]] = deque()

    def rate(self, now: float, count: int) -> float:
        """Record a count and return its growth per second; 0 until two samples exist.

        Samples that follow each other quickly are thinned out to `MAX_SAMPLES` per window.
        """
        while len(self._samples) > 1 and self._samples[1][0] <= now - self._window:
            self._samples.popleft()
        if not self._samples or now - self._samples[-1][0] >= self._window / MAX_SAMPLES:
            self._samples.append((now, count))
        start, start_count = self._samples[0]
        return (count - start_count) / (now - start) if now > start else 0.0

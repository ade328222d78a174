"""What a prefetch counts. Plain numbers: the hot path bumps them, and whoever looks reads them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

import msgspec

from podferry.contract.status import Transfer

FIRST_BYTE = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds, upper bounds of the histogram: from a server on this machine to one that is given up soon."""
WINDOW = 5.0
"""Seconds that a rate looks back: long enough to be steady, short enough to tell a stall."""


def _none() -> list[int]:
    return [0] * (len(FIRST_BYTE) + 1)


class TransferCounters(Transfer):
    """Counts one dataset's prefetch, for one thread. It is the status's own record: nothing is copied.

    A process that helps has a meter of its own and sends what `take` gives; the other end does `add`.
    """

    first_bytes: list[int] = msgspec.field(default_factory=_none)

    def first_byte(self, seconds: float) -> None:
        """An answer has begun, so long after it was asked for."""
        self.first_bytes[bisect_left(FIRST_BYTE, seconds)] += 1
        self.first_byte_seconds += seconds

    def take(self) -> TransferCounters:
        """What was counted since the last call; of `connections`, how many more there are."""
        taken = TransferCounters(**msgspec.structs.asdict(self))
        for name in SUMMED:
            setattr(self, name, 0)
        self.first_bytes = _none()
        return taken

    def add(self, other: Transfer) -> None:
        """Count what another has counted."""
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for index, count in enumerate(other.first_bytes):
            self.first_bytes[index] += count


SUMMED = tuple(name for name in TransferCounters.__struct_fields__ if name not in {"first_bytes", "why"})
"""All numbers but the histogram."""


class Speed:
    """How fast a count grows, over the last seconds."""

    def __init__(self, window: float = WINDOW) -> None:
        self._window = window
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, now: float, count: int) -> float:
        """Note a count, and tell how much it grows a second; 0 until it was seen twice.

        Looks back as far as the window, or as far as there was a look; many looks in little time are thinned.
        """
        while len(self._seen) > 1 and self._seen[1][0] <= now - self._window:
            self._seen.popleft()
        if not self._seen or now - self._seen[-1][0] >= self._window / SAMPLES:
            self._seen.append((now, count))
        since, before = self._seen[0]
        return (count - before) / (now - since) if now > since else 0.0


SAMPLES = 50
"""Looks that a window keeps at most."""

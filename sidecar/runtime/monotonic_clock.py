"""A clock whose every reading is later than the one before, so that times identify events."""

from __future__ import annotations

import math
from collections.abc import Callable


class MonotonicClock:
    """Seconds since the epoch, after `after`; increasing even if the machine's clock `now` is set back."""

    def __init__(self, now: Callable[[], float], after: float = 0.0) -> None:
        self._now, self._last = now, after

    def __call__(self) -> float:
        """The time, or just after the last reading if the clock shows an earlier one."""
        self._last = max(self._now(), math.nextafter(self._last, math.inf))
        return self._last

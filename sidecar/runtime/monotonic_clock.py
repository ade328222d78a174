"""A clock that never stands still and never goes back, for what is told apart by its time."""

from __future__ import annotations

import math
from collections.abc import Callable


class MonotonicClock:
    """Seconds since the epoch, each answer later than the one before, also where the clock was set back.

    Args:
        now: The machine's clock.
        after: A time that has been told already.
    """

    def __init__(self, now: Callable[[], float], after: float = 0.0) -> None:
        self._now, self._last = now, after

    def __call__(self) -> float:
        """The time; a little after the last answer where the clock shows an earlier one."""
        self._last = max(self._now(), math.nextafter(self._last, math.inf))
        return self._last

"""Recognizes an outage, so that it is one line of the log and not one for each retry."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from podferry.contract.errors import FerryError, Problem

GAP_SECONDS = 60.0
"""Longer without a failure, and the next one is a new outage: retries follow each other in seconds."""
REMINDER_SECONDS = 600.0
"""An outage that continues is reported again after this time."""
MAX_CAUSES = 100
"""Causes that are remembered: a store may put a different number in each answer."""


class Outages:
    """The failures that retries have met; `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: dict[str, tuple[float, float]] = {}  # (reported, last seen) by cause, oldest first

    def is_news(self, error: BaseException) -> bool:
        """Whether this failure is the first of its outage, or the last report is long ago."""
        cause, now = _cause(error), self._now()
        reported, seen = self._seen.pop(cause, (-math.inf, -math.inf))
        is_known = now - seen <= GAP_SECONDS and now - reported <= REMINDER_SECONDS
        self._seen[cause] = (reported if is_known else now, now)  # the last one now
        if len(self._seen) > MAX_CAUSES:
            del self._seen[next(iter(self._seen))]
        return not is_known


def _cause(error: BaseException) -> str:
    """The values that requests of different objects share: measured values, such as status and endpoint."""
    if isinstance(error, FerryError) and error.problems:
        return "; ".join(_evidence(problem) for problem in error.problems)
    return repr(error)


def _evidence(problem: Problem) -> str:
    return problem.measured or problem.what

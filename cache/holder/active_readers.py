"""Which readers a holder serves at this moment."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINGER_SECONDS = 5.0
"""After its last request, until a reader counts as gone: between two files it computes and writes."""
MAX_GONE = 10_000
"""Readers that are remembered after their last request."""


class ActiveReaders:
    """Counts requests by reader; `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: Counter[str] = Counter()
        self._ended: dict[str, float] = {}

    @contextmanager
    def request(self, name: str) -> Iterator[None]:
        """While a request of a reader is served."""
        self._open[name] += 1
        try:
            yield
        finally:
            self._open[name] -= 1
            self._ended[name] = self._now()
            if len(self._ended) > MAX_GONE:
                self.names()

    def names(self) -> tuple[str, ...]:
        """The readers, sorted."""
        since = self._now() - LINGER_SECONDS
        self._ended = {name: at for name, at in self._ended.items() if at >= since}
        self._open = +self._open
        return tuple(sorted({*self._open, *self._ended}))

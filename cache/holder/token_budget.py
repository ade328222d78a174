"""How many unknown tokens are reviewed for one address: who guesses must not flood the API server."""

from __future__ import annotations

import time
from collections.abc import Callable

MAX_UNKNOWN = 100
"""Tokens without a valid one among them, of one address in `WINDOW_SECONDS`: more pods than a node has may
start behind one address."""
WINDOW_SECONDS = 30.0
MAX_ADDRESSES = 10_000
"""That are remembered, about a MB; the oldest is forgotten first."""


class TokenBudget:
    """Counts by address; `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._spent: dict[str, tuple[float, int]] = {}

    def spend(self, address: str) -> bool:
        """Count a token of an address before it is reviewed; False if it has had too many."""
        since, count = self._spent.get(address, (0.0, 0))
        if not count or self._now() - since >= WINDOW_SECONDS:
            since, count = self._now(), 0
        if count >= MAX_UNKNOWN:
            return False
        self._spent.pop(address, None)  # the latest are at the end
        while len(self._spent) >= MAX_ADDRESSES:
            self._spent.pop(next(iter(self._spent)))
        self._spent[address] = since, count + 1
        return True

    def give_back(self, address: str) -> None:
        """The token was valid."""
        since, count = self._spent.get(address, (0.0, 0))
        if count:
            self._spent[address] = since, count - 1

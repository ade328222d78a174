"""How fast uploads may go, and how fast they went."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

from podferry.sidecar.state.upload_counters import Clock


class RateLimiter:
    """Keeps all transfers together below a rate: a token bucket that lends one transfer of any size.

    A transfer goes at once when everything before it has been paid for, and in its turn. So within any time
    no more goes out than the rate allows, and one transfer. (aiolimiter refuses amounts above its capacity,
    and lets small ones overtake large ones.)

    Args:
        rate: Bytes a second; None for as many as there are.
        clock: For tests.
        sleep: For tests.
    """

    def __init__(
        self,
        rate: int | None,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate, self._clock, self._sleep = rate, clock, sleep
        self._paid = 0.0
        self._lock = threading.Lock()
        self._line = asyncio.Lock()

    async def take(self, count: int) -> None:
        """Wait for the turn of `count` bytes. A wait that is cancelled has cost the others nothing."""
        if self._rate is None:
            return
        async with self._line:
            while (delay := self._paid - self._clock()) > 0:
                await self._sleep(delay)
            self.reserve(count)

    def reserve(self, count: int) -> float:
        """Take the turn of `count` bytes; the seconds until it comes. Any thread may call."""
        if self._rate is None:
            return 0.0
        with self._lock:
            now = self._clock()
            turn = max(self._paid, now)
            self._paid = turn + count / self._rate
            return turn - now

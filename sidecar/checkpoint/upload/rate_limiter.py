"""Limits the rate of uploads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

from podferry.sidecar.state.upload_counters import Clock


class RateLimiter:
    """Keeps the sum of all transfers below a rate: a token bucket that lends to one transfer of any size.

    Transfers start in their order, each when all before it are paid for. So in any period no more is sent
    than the rate allows, plus one transfer. (aiolimiter refuses amounts above its capacity and lets small
    ones overtake large ones.) `rate` is in bytes per second, None for no limit.
    """

    def __init__(
        self,
        rate: int | None,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate, self._clock, self._sleep = rate, clock, sleep
        self._paid_until = 0.0
        self._lock = threading.Lock()
        self._turn = asyncio.Lock()

    async def take(self, count: int) -> None:
        """Wait until `count` bytes may be sent. A cancelled wait costs the others nothing."""
        if self._rate is None:
            return
        async with self._turn:
            while (delay := self._paid_until - self._clock()) > 0:
                await self._sleep(delay)
            self.reserve(count)

    def reserve(self, count: int) -> float:
        """Reserve `count` bytes; returns the seconds until they may be sent. Thread-safe."""
        if self._rate is None:
            return 0.0
        with self._lock:
            now = self._clock()
            start = max(self._paid_until, now)
            self._paid_until = start + count / self._rate
            return start - now

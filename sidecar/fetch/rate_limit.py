"""Limits the bytes a second that a source sends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

MIN_SHARE = 1 << 19
"""Bytes a second of each that shares a limit, however many they are: a range of 8 MiB takes 16 s, and who
receives nothing for 20 s counts as stalled."""


class RateLimit:
    """Has fetching wait for its turn; one request may always start.

    Args:
        bytes_per_second: Of all that share the limit.
        now: A monotonic clock in seconds.
        sleep: Waits for seconds.

    Attributes:
        sharers: How many share it at this moment, in processes of their own; each takes an equal part.
    """

    def __init__(
        self,
        bytes_per_second: int,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.sharers = 1
        self._bytes_per_second, self._now, self._sleep = bytes_per_second, now, sleep
        self._free_at = 0.0

    @property
    def share(self) -> float:
        """Bytes a second of this process."""
        return max(self._bytes_per_second / self.sharers, MIN_SHARE)

    async def take(self, count: int) -> None:
        """Wait until `count` bytes may be requested: until those taken before have had their time."""
        now = self._now()
        starts_at = max(self._free_at, now)
        self._free_at = starts_at + count / self.share
        if starts_at > now:
            await self._sleep(starts_at - now)

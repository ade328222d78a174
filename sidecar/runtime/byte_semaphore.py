"""Limits the bytes in flight."""

from __future__ import annotations

import asyncio
from collections import deque


class ByteSemaphore:
    """Limits the bytes in flight; waiters are served in order. Not thread-safe."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._limit = limit
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def acquire(self, count: int) -> None:
        """Wait until `count` bytes are free; more than the limit counts as the limit."""
        count = min(count, self._limit)
        if not self._waiters and count <= self._free:
            self._free -= count
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiters.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # granted at the same moment
                self._free += count
            self._wake()
            raise

    def release(self, count: int) -> None:
        """Free as many bytes as `acquire` was called with."""
        self._free += min(count, self._limit)
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            count, turn = self._waiters[0]
            if not turn.cancelled():
                if count > self._free:
                    return
                self._free -= count
                turn.set_result(None)
            self._waiters.popleft()

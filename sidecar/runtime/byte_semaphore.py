"""Bytes that may be in flight."""

from __future__ import annotations

import asyncio
from collections import deque


class ByteSemaphore:
    """Bytes that may be in flight; waiting is first come, first served."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._total = total
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, count: int) -> None:
        """Wait until `count` bytes are free; more than the total counts as the total."""
        count = min(count, self._total)
        if not self._queue and count <= self._free:
            self._free -= count
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # granted at the same moment
                self._free += count
            self._grant()
            raise

    def give(self, count: int) -> None:
        """Give bytes back."""
        self._free += min(count, self._total)
        self._grant()

    def _grant(self) -> None:
        while self._queue:
            count, turn = self._queue[0]
            if not turn.cancelled():
                if count > self._free:
                    return
                self._free -= count
                turn.set_result(None)
            self._queue.popleft()

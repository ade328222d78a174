"""Threads that run blocking calls for one event loop.

`ThreadPoolExecutor` wakes the loop for every call, and makes two futures and a lock for it: for a small file
that is half of the processor time. Here results are collected, and the loop is woken once for all of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Call = tuple["asyncio.Future[Any]", Callable[[], Any]]
Result = tuple["asyncio.Future[Any]", Any, BaseException | None]


class WorkerThreads:
    """A number of threads, started with the first call."""

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._results: deque[Result] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = 0
        self._woken = False

    async def run(self, work: Callable[[], T]) -> T:
        """What a blocking call returns or raises; it is made even if this task is cancelled."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = self._loop.create_future()
        self._calls.put((result, work))
        if self._started < self._count:
            self._started += 1
            threading.Thread(target=self._serve, name=f"{self._name}_{self._started}", daemon=True).start()
        return await result

    def close(self) -> None:
        """Let the threads end when their calls have; nothing must be called after this."""
        for _ in range(self._started):
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            result, work = call
            if result.cancelled():
                continue
            try:
                self._results.append((result, work(), None))
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                self._results.append((result, None, error))
            del call, result, work
            self._wake()

    def _wake(self) -> None:
        # Between these two lines another thread may wake the loop too, which does no harm.
        if not self._woken and self._loop is not None and not self._loop.is_closed():
            self._woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._woken = False  # before looking: what is appended from now on wakes the loop again
        while self._results:
            result, value, error = self._results.popleft()
            if result.done():
                continue
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(value)

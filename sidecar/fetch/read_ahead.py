"""Reads an object ahead, for an engine that takes the body of a write in a thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import Any

READ_AHEAD = 2
"""Ranges of one object that are read while the one before is written."""

ReadRange = Callable[[int, int], Coroutine[Any, Any, memoryview]]
"""Reads exactly (start, length) on the event loop."""


def read_ahead(
    read: ReadRange, size: int, range_bytes: int, loop: asyncio.AbstractEventLoop
) -> Iterator[memoryview]:
    """Ranges in order. Iterate in another thread than the loop's; what `read` raises is raised there."""
    starts = iter(range(0, size, range_bytes))
    pending: deque[Future[memoryview]] = deque()
    try:
        while True:
            for start in islice(starts, READ_AHEAD + 1 - len(pending)):
                work = read(start, min(range_bytes, size - start))
                pending.append(asyncio.run_coroutine_threadsafe(work, loop))
            if not pending:
                return
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()

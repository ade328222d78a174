"""Calls that run in parallel, a limited number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def for_each_limited(items: Iterable[T], work: Callable[[T], Awaitable[None]], limit: int) -> None:
    """Call `work` for each item, `limit` at a time; the first failure cancels the others."""
    remaining = iter(items)

    async def worker() -> None:
        for item in remaining:
            await work(item)

    workers = [asyncio.ensure_future(worker()) for _ in range(limit)]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

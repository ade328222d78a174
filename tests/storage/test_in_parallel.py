"""Limited parallel calls."""

from __future__ import annotations

import asyncio

import pytest

from podferry.storage.in_parallel import for_each_limited


async def test_all_items_are_visited_a_limited_number_at_a_time() -> None:
    running, most, seen = 0, 0, list[int]()

    async def visit(item: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        seen.append(item)

    await for_each_limited(range(20), visit, 3)
    assert sorted(seen) == list(range(20))
    assert most == 3


async def test_the_first_failure_cancels_the_others() -> None:
    cancelled = 0

    async def visit(item: int) -> None:
        nonlocal cancelled
        if item == 1:
            raise ValueError(item)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled += 1
            raise

    with pytest.raises(ValueError, match="1"):
        await for_each_limited(range(20), visit, 3)
    assert cancelled == 2

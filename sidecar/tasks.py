"""Running coroutines together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from typing import TypeVar

import stamina

from podferry.contract.errors import TemporaryError

T = TypeVar("T")


async def all_of(work: Iterable[Coroutine[object, object, None]]) -> None:
    """Run everything at once; the first failure cancels the rest and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except ExceptionGroup as failures:
        first = failures.exceptions[0]
    else:
        return
    raise first  # out of the handler: its own cause, such as a vendor's exception, must stay


def attempts(count: int) -> AsyncIterator[stamina.Attempt]:
    """So many tries of one request, with pauses, where it fails for a reason that may pass."""
    return stamina.retry_context(on=TemporaryError, attempts=count, timeout=None)


async def each(
    items: Sequence[T], work: Callable[[T], Coroutine[object, object, None]], at_once: int
) -> None:
    """Do the work for each of the items, in order, so many at once; failures are as in `all_of`."""
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    await all_of(worker() for _ in range(min(at_once, len(items))))

"""Running coroutines together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable


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

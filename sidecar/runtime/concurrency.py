"""Runs coroutines concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from podferry.contract.errors import FerryError, PermanentError, Refused, TemporaryError

T = TypeVar("T")


async def gather_all(work: Iterable[Coroutine[object, object, None]]) -> None:
    """Run all concurrently; the first failure cancels the others and is raised unwrapped."""
    async with task_group() as group:
        for coroutine in work:
            group.create_task(coroutine)


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose first failure cancels the other tasks and is raised unwrapped.

    Before Python 3.13, a group that fails leaves its own cancellation of the current task counted, and a
    later `asyncio.timeout` of Python 3.11.2 then takes its end for a cancellation from outside.
    """
    task = asyncio.current_task()
    cancellations = task.cancelling() if task is not None else 0
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as failures:
        first = failures.exceptions[0]
        if task is not None and task.cancelling() > cancellations:
            task.uncancel()
    else:
        return
    raise first  # outside of the handler: it keeps its own cause, such as a vendor's exception


async def for_each_limited(
    items: Sequence[T], work: Callable[[T], Coroutine[object, object, None]], limit: int
) -> None:
    """Await `work(item)` for each item, at most `limit` concurrently; failures as in `gather_all`."""
    remaining = iter(items)

    async def worker() -> None:
        for item in remaining:
            await work(item)

    await gather_all(worker() for _ in range(min(limit, len(items))))


def merge_errors(results: Sequence[object]) -> FerryError | None:
    """Merge all errors into one, or return None if there is none.

    Args:
        results: Of `asyncio.gather` with `return_exceptions`; exceptions other than `FerryError` are raised.

    Returns:
        A permanent error if one of them is: then retrying cannot succeed.
    """
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, FerryError):
            raise result
    errors = [result for result in results if isinstance(result, FerryError)]
    if len(errors) < 2:
        return errors[0] if errors else None
    problems = [problem for error in errors for problem in error.problems]
    kind = Refused if any(isinstance(error, PermanentError) for error in errors) else TemporaryError
    return kind(*problems)

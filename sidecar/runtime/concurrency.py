"""Running coroutines together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TypeVar

from podferry.contract.errors import FerryError, PermanentError, Refused, TemporaryError

T = TypeVar("T")


async def gather_all(work: Iterable[Coroutine[object, object, None]]) -> None:
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


async def retry(attempts: int, operation: Callable[[], Coroutine[object, object, T]]) -> T:
    """Await `operation()`, up to `attempts` times with growing pauses while it raises `TemporaryError`.

    stamina costs as much as a small file: only an operation that has failed once pays for it.
    """
    try:
        return await operation()
    except TemporaryError as error:
        failure: TemporaryError | None = error
    import stamina  # noqa: PLC0415 - most requests succeed, and what starts often must start quickly

    async for attempt in stamina.retry_context(on=TemporaryError, attempts=attempts, timeout=None):
        with attempt:
            if failure is not None:
                try:
                    raise failure
                finally:
                    failure = None  # its traceback holds the data of the first attempt
            return await operation()
    raise AssertionError("unreachable: the last attempt returns or raises")


async def for_each_limited(
    items: Sequence[T], work: Callable[[T], Coroutine[object, object, None]], at_once: int
) -> None:
    """Do the work for each of the items, in order, so many at once; failures are as in `gather_all`."""
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    await gather_all(worker() for _ in range(min(at_once, len(items))))


def merge_errors(results: Sequence[object]) -> FerryError | None:
    """One error of all that went wrong; None where nothing did.

    Args:
        results: What `asyncio.gather` returns with its exceptions; one that is none of ours is raised.

    Returns:
        A permanent error where one of them is: trying again does not help the whole.
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

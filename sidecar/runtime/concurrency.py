"""Runs coroutines concurrently, and retries them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TypeVar

from podferry.contract.errors import FerryError, PermanentError, Refused, TemporaryError

T = TypeVar("T")


async def gather_all(work: Iterable[Coroutine[object, object, None]]) -> None:
    """Run all concurrently; the first failure cancels the others and is raised unwrapped."""
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in work:
                group.create_task(coroutine)
    except ExceptionGroup as failures:
        first = failures.exceptions[0]
    else:
        return
    raise first  # outside of the handler: it keeps its own cause, such as a vendor's exception


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

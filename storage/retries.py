"""Repeats a call that failed for the moment: how often, and for how long."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from podferry.contract.errors import Changed, TemporaryError
from podferry.storage.lazy_log import prepare_logs

T = TypeVar("T")
MAX_PAUSE_SECONDS = 5.0
"""The pauses double from 0.1 s on, stamina's default."""
CHANGED_ATTEMPTS = 5
"""A small object is read within milliseconds, and nobody replaces one so often."""
FIRST_PAUSE_SECONDS = 0.2
"""The first one of `pauses`."""
JITTER_SECONDS = 0.2
"""Each pause is longer by up to this time, by chance, so that clients do not come together."""


async def retry_temporary(
    operation: Callable[[], Awaitable[T]],
    attempts: int | None,
    seconds: float | None,
    in_time: Callable[[Exception], bool] = lambda error: True,
) -> T:
    """Await `operation()`, again with growing pauses while it raises `TemporaryError`.

    stamina costs as much as a small file: only an operation that has failed once pays for it.

    Args:
        operation: Is called for each attempt.
        attempts: At most; None for as many as there is time for.
        seconds: No attempt starts later; None for as long as there are attempts.
        in_time: Whether there is time for another attempt after this error, if the caller counts it.

    Raises:
        TemporaryError: That of the last attempt.
    """
    try:
        return await operation()
    except TemporaryError as error:
        if attempts == 1 or seconds == 0:
            raise
        failure: TemporaryError | None = error
    import stamina  # noqa: PLC0415 - most requests succeed, and what starts often must start quickly

    for prepare in prepare_logs:  # stamina's own hook prints
        prepare()
    waits = {"wait_jitter": JITTER_SECONDS, "wait_max": MAX_PAUSE_SECONDS}
    async for attempt in stamina.retry_context(
        on=lambda error: isinstance(error, TemporaryError) and in_time(error),
        attempts=attempts,
        timeout=seconds,
        **waits,
    ):
        with attempt:
            if failure is not None:
                try:
                    raise failure
                finally:
                    failure = None  # its traceback holds the data of the first attempt
            return await operation()
    raise AssertionError("unreachable: the last attempt returns or raises")


async def retry_changed(read: Callable[[], Awaitable[T]], tag: str, size: int | None) -> T:
    """Await a read of an object, again if that is replaced meanwhile and the caller has named no version.

    Raises:
        Changed: It is not the version of this tag or size, or it is replaced all the time.
    """
    attempts = CHANGED_ATTEMPTS if not tag and size is None else 1
    for _ in range(attempts - 1):
        with suppress(Changed):
            return await read()
    return await read()


def pauses(retries: int, seconds: float) -> Iterator[float]:
    """Seconds to wait before each further attempt: doubled, and none that ends later than `seconds` from now.

    For engines that decide by what was done over a connection whether it may be done again.
    """
    deadline, pause = time.monotonic() + seconds, FIRST_PAUSE_SECONDS
    for _ in range(retries):
        if time.monotonic() + pause > deadline:
            return
        yield pause
        pause *= 2

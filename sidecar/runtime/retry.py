"""Retries a failed call: how often, and with which pauses. Which failures qualify is their type."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TypeVar

from podferry.contract.errors import TemporaryError

T = TypeVar("T")


async def retry(
    attempts: int, operation: Callable[[], Coroutine[object, object, T]], patience: float | None = None
) -> T:
    """Await `operation()`, up to `attempts` times with growing pauses while it raises `TemporaryError`.

    With a `patience` in seconds, as often as it allows instead; no attempt starts later.

    stamina costs as much as a small file: only an operation that has failed once pays for it.
    """
    try:
        return await operation()
    except TemporaryError as error:
        failure: TemporaryError | None = error
    import stamina  # noqa: PLC0415 - most requests succeed, and what starts often must start quickly

    from podferry.sidecar.runtime.log_setup import configure_unless_done  # noqa: PLC0415 - as above

    configure_unless_done()
    limit = attempts if patience is None else None
    async for attempt in stamina.retry_context(on=TemporaryError, attempts=limit, timeout=patience):
        with attempt:
            if failure is not None:
                try:
                    raise failure
                finally:
                    failure = None  # its traceback holds the data of the first attempt
            return await operation()
    raise AssertionError("unreachable: the last attempt returns or raises")

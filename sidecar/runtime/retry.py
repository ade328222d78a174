"""Retries a failed call, and says so in the log. Which failures qualify is their type."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TypeVar

from podferry.storage.lazy_log import prepare_logs
from podferry.storage.retries import retry_temporary

T = TypeVar("T")


async def retry(
    attempts: int, operation: Callable[[], Coroutine[object, object, T]], patience: float | None = None
) -> T:
    """Await `operation()`, up to `attempts` times with growing pauses while it raises `TemporaryError`.

    With a `patience` in seconds, as often as it allows instead; no attempt starts later.
    """
    return await retry_temporary(operation, attempts if patience is None else None, patience)


def _configure_logs() -> None:
    from podferry.sidecar.runtime import log_setup  # noqa: PLC0415 - loads much

    log_setup.configure_unless_done()
    log_setup.log_retries()


prepare_logs.append(_configure_logs)

"""How long a step before the gate is repeated while its store does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from podferry.storage.retries import retry_temporary

T = TypeVar("T")


class StartupPatience:
    """Decides after each failed attempt whether there is time for another one.

    If the server is silent, an attempt takes its full request timeout: none starts that would end too late.
    Where the store answered before it failed, the time counts from that failure, because a long listing or
    restore may have taken more: once, so that a store that always breaks off is not asked for ever.

    Args:
        seconds: That the store may not answer.
        now: When the step starts; all times are in seconds of one clock.
    """

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._since = self._attempt_at = now
        self._broke_off = False

    def attempt(self, now: float) -> None:
        """An attempt starts."""
        self._attempt_at = now

    def has_time(self, now: float, *, answered: bool) -> bool:
        """Whether another attempt like the one that failed would end in time.

        Args:
            now: When it failed.
            answered: Whether the store has answered since the step started.
        """
        if answered and not self._broke_off:
            self._broke_off = True
            self._since = self._attempt_at = now
        return now + (now - self._attempt_at) - self._since <= self._seconds


async def repeat(
    step: Callable[[], Coroutine[Any, Any, T]], patience: StartupPatience, answered: Callable[[], bool]
) -> T:
    """Await `step()`, again with growing pauses while it raises `TemporaryError` and there is time."""

    def in_time(_: Exception) -> bool:
        return patience.has_time(time.monotonic(), answered=answered())

    async def attempt() -> T:
        patience.attempt(time.monotonic())
        return await step()

    return await retry_temporary(attempt, None, None, in_time)

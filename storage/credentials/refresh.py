"""Keys and tokens that may change while they are in use: read again after some time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from podferry.contract.errors import FerryError

T = TypeVar("T")
REFRESH_SECONDS = 30.0
"""For how long a value is used; Kubernetes takes about a minute to update a mounted Secret."""


class RefreshedValue(Generic[T]):
    """A value that is read in a thread; `value` is what was read last, None before the first `refresh`."""

    def __init__(self, read: Callable[[], T], lasting: bool = False) -> None:
        self.value: T | None = None
        self._read = read
        self._seconds = math.inf if lasting else REFRESH_SECONDS
        self._due = -math.inf

    async def refresh(self) -> None:
        """Read the value if it is due. If that fails, the last one remains: it may still be valid.

        Raises:
            FerryError: The first read failed.
        """
        if time.monotonic() < self._due:
            return
        try:
            self.value = await asyncio.to_thread(self._read)
        except FerryError:
            if self.value is None:
                raise
        self._due = time.monotonic() + self._seconds

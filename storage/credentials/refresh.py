"""Keys and tokens that are exchanged while they are in use, read anew now and then."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from podferry.contract.errors import FerryError

T = TypeVar("T")
REFRESH_SECONDS = 30.0
"""How long keys are used before they are read again; Kubernetes takes a minute or so to exchange them."""


class RefreshedValue(Generic[T]):
    """Something that is asked for in a thread, at the first time and whenever it is due.

    Attributes:
        value: What was found last; None before the first time.
    """

    def __init__(self, read: Callable[[], T], lasting: bool = False) -> None:
        self.value: T | None = None
        self._read = read
        self._seconds = math.inf if lasting else REFRESH_SECONDS
        self._due = -math.inf

    async def refresh(self) -> None:
        """Read it where it is due. What is held stays where that fails: it may last until it succeeds.

        Raises:
            FerryError: Nothing is held yet, and nothing was found.
        """
        if time.monotonic() < self._due:
            return
        try:
            self.value = await asyncio.to_thread(self._read)
        except FerryError:
            if self.value is None:
                raise
        self._due = time.monotonic() + self._seconds

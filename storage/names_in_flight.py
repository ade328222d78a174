"""The names that a store is writing: those that may be one file at the server wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podferry.contract.file_names import caseless


class _Held:
    __slots__ = ("freed", "name", "writers")

    def __init__(self, name: str) -> None:
        self.name, self.writers, self.freed = name, 0, asyncio.Event()


class NamesInFlight:
    """The names that are being written."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    @asynccontextmanager
    async def held(self, name: str) -> AsyncIterator[None]:
        """Wait while a name is written that differs only in case; such names wait until the block ends."""
        key = caseless(name)
        while (held := self._held.setdefault(key, _Held(name))).name != name:
            await held.freed.wait()
        held.writers += 1
        try:
            yield
        finally:
            held.writers -= 1
            if not held.writers:
                del self._held[key]
                held.freed.set()

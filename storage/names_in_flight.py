"""The names that a store is writing: those that may be one file at the server wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from podferry.contract.file_names import caseless


@dataclass(slots=True)
class _Held:
    name: str
    writers: int = 0
    freed: asyncio.Event = field(default_factory=asyncio.Event)


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

"""How bytes are fetched into the stage.

A lane is given ranges of listed objects and returns their bytes. `EngineLane` uses the store's own client;
a leaner lane may serve stores that can say which HTTP request fetches a range, and hand back to this one
all that is not a plain answer.
"""

from __future__ import annotations

from typing import Protocol

from podferry.contract.manifest import Entry
from podferry.storage.store import Store


class Lane(Protocol):
    """Fetches ranges of a listed object."""

    async def fetch(self, entry: Entry, start: int, length: int) -> memoryview:
        """Exactly `length` bytes from `start` of the version that `entry` names.

        Raises:
            Changed, NotFound, Corrupt: It is no longer what was listed.
            TemporaryError: The same call may succeed later.
        """


class EngineLane:
    """The lane of the store's own client, with the retries and the messages that it has."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def fetch(self, entry: Entry, start: int, length: int) -> memoryview:
        """See `Lane.fetch`."""
        return await self.store.read(entry.name, start, length, entry.tag, entry.size)

"""The entry of an object that is a dataset of its own."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from podferry.contract.manifest import Entry
from podferry.storage.store import Store


@runtime_checkable
class StatsFile(Protocol):
    """A store that knows a file from a web page that is served for any name."""

    async def stat_file(self, name: str) -> Entry:
        """See `Store.stat`.

        Raises:
            InvalidSpec: It is a web page, and the name is not one of a page.
        """


async def stat_file(store: Store, name: str) -> Entry:
    """The entry of an object that was not listed.

    Raises:
        NotFound: There is no such object.
        InvalidSpec: The store knows that it is none.
    """
    return await (store.stat_file(name) if isinstance(store, StatsFile) else store.stat(name))

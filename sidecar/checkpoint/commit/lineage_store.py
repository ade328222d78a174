"""The objects of one lineage at a destination. Only this module joins a lineage's name to an object's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from podferry.contract.errors import NotFound
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.store import Body, Store, WriteMode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LineageStore:
    """A store scoped to one lineage: all names, given and returned, are relative to it.

    The calls are those of `Store`, and raise the same errors. `destination` holds all lineages.
    """

    destination: Store
    lineage: str

    @property
    def uri(self) -> Uri:
        """The lineage's URI."""
        return self.destination.uri / self.lineage

    def uri_of(self, name: str) -> Uri:
        """An object's URI, for messages."""
        return self.uri / name

    def path(self, name: str) -> str:
        """An object's name at the destination, for calls that this class does not have."""
        return f"{self.lineage}/{name}"

    async def read(self, name: str, start: int = 0, length: int | None = None, tag: str = "") -> memoryview:
        """See `Store.read`."""
        return await self.destination.read(self.path(name), start, length, tag)

    async def load(self, name: str, decode: Callable[[bytes, str], T]) -> T:
        """Read and decode a document.

        `decode` is called with the bytes and, for messages, the URI; what it raises reaches the caller.
        """
        return decode(bytes(await self.read(name)), str(self.uri_of(name)))

    async def find(self, name: str, decode: Callable[[bytes, str], T]) -> T | None:
        """Like `load`; None if the object does not exist."""
        try:
            return await self.load(name, decode)
        except NotFound:
            return None

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        await self.destination.write(self.path(name), body, mode)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        return self._relative(await self.destination.stat(self.path(name)))

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        return await self.destination.children(self.path(prefix) if prefix else self.lineage)

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`; an empty prefix yields the entire lineage."""
        async for entry in self.destination.entries(self.path(prefix) if prefix else self.lineage):
            yield self._relative(entry)

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`."""
        await self.destination.delete(map(self.path, names))

    def _relative(self, entry: Entry) -> Entry:
        return msgspec.structs.replace(entry, name=entry.name.removeprefix(self.path("")))

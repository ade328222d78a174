"""A store in memory with scripted faults, shipped for tests and dry runs.

Within one process every `memory://NAME` is the same store. Faults are listed, not random: each call meets the
first one that matches it and has strikes left (`podferry.storage.memory.faults`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable

from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation, check_listed, store_error, too_short
from podferry.storage.memory.faults import Content, Fault
from podferry.storage.memory.multipart import MemoryMultipart
from podferry.storage.memory.server_copy import MemoryServerCopy
from podferry.storage.object_names import checked_name, join
from podferry.storage.store import Body, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, MIB, Limits
from podferry.storage.write_body import BodySource

__all__ = ["CONTENTS", "Content", "Fault", "MemoryStore"]

CONTENTS: dict[str, Content] = {}
"""By the bucket of the URI."""


def open_memory(uri: Uri, config: StoreConfig, limits: Limits) -> MemoryStore:
    """Open the shared objects of a name, which need no configuration."""
    del config, limits
    return MemoryStore(uri)


class MemoryStore:
    """Objects in a dictionary; all stores of the same name share `content` and its `faults`."""

    exclusive_create = True
    request_builder = None

    def __init__(self, uri: Uri, content: Content | None = None) -> None:
        self.uri = uri
        self.content = CONTENTS.setdefault(uri.bucket, Content()) if content is None else content
        self.faults = self.content.faults
        self.multipart = MemoryMultipart(uri, self.content)
        self.server_copy = MemoryServerCopy(uri, self.content)
        self._location = StoreLocation(uri)

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The tag is the first 32 digits of the content's SHA-256."""
        fault = await self.content.meet("entries", prefix)
        found = self._below(prefix)
        for name in found[: fault.truncate]:
            data = self.content.objects.get(self._key(name))
            if data is not None:
                yield _entry(name, data)
        fault.raise_after()

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        fault = await self.content.meet("children", prefix)
        rests = [name[len(prefix) + 1 if prefix else 0 :].partition("/") for name in self._below(prefix)]
        found = sorted({first + slash for first, slash, _ in rests})
        fault.raise_after()
        return found[: fault.truncate]

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        fault = await self.content.meet("stat", checked_name(name))
        entry = _entry(name, self._object(name))
        fault.raise_after()
        return entry

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`; a fault may return wrong bytes."""
        fault = await self.content.meet("read", checked_name(name))
        data = self._object(name)
        check_listed(self._location, _entry(name, data) if tag else Entry(name, len(data)), tag, size)
        end = max(start, len(data)) if length is None else start + length
        if end > len(data):
            raise too_short(self._location, name, start, length, f"{len(data)} bytes")
        fault.raise_after()
        return memoryview(fault.damaged(data[start:end]))

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        fault = await self.content.meet("write", checked_name(name))
        source = BodySource(body, MIB, LIMITS.max_object_bytes)
        data = bytearray()
        while part := await asyncio.to_thread(source.next_part):
            data += part
        key = self._key(name)
        if mode is WriteMode.CREATE and key in self.content.objects:
            raise store_error("exists", self._location, name)
        self.content.objects[key] = bytes(data)
        fault.raise_after()

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`; for faults each name is a call."""
        for name in names:
            fault = await self.content.meet("delete", checked_name(name))
            self.content.objects.pop(self._key(name), None)
            fault.raise_after()

    async def close(self) -> None:
        """Nothing to release; the content remains."""

    def _key(self, name: str) -> str:
        return join(self.uri.key, name)

    def _names(self) -> dict[str, bytes]:
        start = self.uri.key + "/" if self.uri.key else ""
        return {
            key[len(start) :]: data for key, data in self.content.objects.items() if key.startswith(start)
        }

    def _below(self, prefix: str) -> list[str]:
        return sorted(name for name in self._names() if not prefix or name.startswith(prefix + "/"))

    def _object(self, name: str) -> bytes:
        try:
            return self.content.objects[self._key(name)]
        except KeyError:
            raise store_error("missing", self._location, name) from None


def _entry(name: str, data: bytes) -> Entry:
    return Entry(name, len(data), hashlib.sha256(data).hexdigest()[:32])

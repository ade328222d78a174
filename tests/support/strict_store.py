"""A store in memory that checks the promise of commits at every write."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

import xxhash

from podferry.contract.destination.commit import Commit, decode_commit
from podferry.contract.uri import parse_uri
from podferry.storage.memory.multipart import MemoryMultipart
from podferry.storage.memory.server_copy import MemoryServerCopy
from podferry.storage.memory.store import Content, MemoryStore
from podferry.storage.multipart import UploadedPart
from podferry.storage.server_copy import StoredObject
from podferry.storage.store import Body, WriteMode
from tests.support.patience import PATIENCE

BASE = "memory://rig/base"


class StrictStore(MemoryStore):
    """A memory store that checks the promise at every write.

    Every commit in it lists objects that exist and are what it says, and none of these ever changes. If
    `gated` is part of a name, a write in chunks or parts stops after the first one until `go` is set.
    """

    def __init__(self, content: Content) -> None:
        super().__init__(parse_uri(BASE), content)
        self.multipart = StrictParts(self)
        self.server_copy = StrictCopy(self)
        self.gated = ""
        self.reached, self.go = threading.Event(), threading.Event()

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        before = dict(self.content.objects)
        if self.gated and self.gated in name and not isinstance(body, bytes):
            body = self._slowly(iter(body))
        try:
            await super().write(name, body, mode)
        finally:
            self.check(before)

    def _slowly(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        yield next(chunks)
        self.reached.set()
        assert self.go.wait(PATIENCE)
        yield from chunks

    def commits(self) -> list[Commit]:
        """All commits, oldest first."""
        keys = sorted(key for key in self.content.objects if "/commits/" in key)
        return [decode_commit(self.content.objects[key], key) for key in keys]

    def bytes_of(self, commit: Commit) -> dict[str, bytes]:
        """What a commit lists, by name."""
        start = f"base/{commit.lineage}"
        return {file.name: self.content.objects[f"{start}/{file.object}"] for file in commit.files}

    def check(self, before: dict[str, bytes]) -> None:
        """Check that all commits are complete, and that what they list has not changed."""
        for commit in self.commits():
            for file in commit.files:
                key = f"base/{commit.lineage}/{file.object}"
                data = self.content.objects[key]
                assert (len(data), xxhash.xxh3_128_hexdigest(data)) == (file.size, file.xxh128)
                assert before.get(key, data) == data


class StrictParts(MemoryMultipart):
    """Uploads in parts to a strict store."""

    def __init__(self, store: StrictStore) -> None:
        super().__init__(store.uri, store.content)
        self._store = store

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        if self._store.gated and self._store.gated in name and number > 1:
            self._store.reached.set()
            assert await asyncio.to_thread(self._store.go.wait, PATIENCE)
        return await super().send(name, upload, number, data)

    async def complete(self, name: str, upload: str, receipts: Sequence[UploadedPart]) -> None:
        before = dict(self._store.content.objects)
        try:
            await super().complete(name, upload, receipts)
        finally:
            self._store.check(before)


class StrictCopy(MemoryServerCopy):
    """Copies within a strict store."""

    def __init__(self, store: StrictStore) -> None:
        super().__init__(store.uri, store.content)
        self._store = store

    async def copy(self, source: str, target: str) -> StoredObject:
        before = dict(self._store.content.objects)
        try:
            return await super().copy(source, target)
        finally:
            self._store.check(before)

"""Directories as stores: `file:///directory`, and `pvc://CLAIM/directory` of a claim that a pod has mounted.

A write goes to a temporary file next to its target, is synced, and gets its name by `os.link`, which refuses
a name that is taken, or by `os.replace`, which does not. Listings skip temporary files. Those left by a crash
are not removed, because another writer may be using them.

The first directory of the path counts as the bucket: it must exist, while those below it are created when
needed. So a mistyped mount point is an error, not a new directory on the machine's disk.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from podferry.contract.claims import CLAIMS_DIR
from podferry.contract.claims import SCHEME as CLAIM_SCHEME
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation, check_listed, too_short, translating
from podferry.storage.local.files import (
    check_inside,
    check_root_directory,
    publish_file,
    read_exactly,
    remove_file,
    write_all,
)
from podferry.storage.local.listing import files_below, is_object, names_in, scan
from podferry.storage.local.multipart import LocalMultipart
from podferry.storage.local.server_copy import LocalServerCopy
from podferry.storage.object_names import checked_name, join
from podferry.storage.same_names import SameNames
from podferry.storage.store import Body, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits
from podferry.storage.walk import Directory
from podferry.storage.write_body import BodySource

T = TypeVar("T")
ROOT = Path("/")
"""URIs' paths are relative to it."""
CLAIMS = ROOT / CLAIMS_DIR.strip("/")
BATCH_ENTRIES = 1000
"""Entries that the listing's thread hands over at a time."""


def open_local(uri: Uri, config: StoreConfig, limits: Limits) -> LocalStore:
    """Open a directory, which needs no configuration."""
    del config
    return LocalStore(uri, limits)


class LocalStore:
    """A directory as a store. File system calls run in threads."""

    exclusive_create = True
    request_builder = None

    def __init__(self, uri: Uri, limits: Limits = LIMITS) -> None:
        self.uri = uri
        self._required = required_directory(uri)
        self._claim = self._required if uri.scheme == CLAIM_SCHEME else None
        self._root = CLAIMS / uri.bucket / uri.key if uri.scheme == CLAIM_SCHEME else ROOT / uri.key
        # Errors name the path: what is wrong is wrong with a file.
        self._location = StoreLocation(Uri("file", "", str(self._root).strip("/")))
        self._names = SameNames(self._location.uri, self._found, self._directory)
        writing = self._names.writing
        self.multipart = LocalMultipart(self._call, self._location, self._root, writing)
        self.server_copy = LocalServerCopy(self._call, self._location, self._root, writing)
        self._limits = limits

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The tag consists of the file's inode, modification time and size."""
        found = self._walk(prefix)
        while batch := await self._call(prefix, lambda: list(islice(found, BATCH_ENTRIES))):
            for entry in batch:
                yield entry

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`; directories without files are skipped, as object stores have none."""
        return await self._call(prefix, lambda: sorted(self._children(prefix)))

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        path = self._path(name)
        return await self._call(name, lambda: self._entry(name, _status(path)))

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`."""
        return await self._call(name, lambda: self._read(name, start, length, tag, size))

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        source = BodySource(body, self._limits.part_bytes, 1 << 62)
        try:
            async with self._names.writing(checked_name(name)):
                await self._call(name, lambda: self._write(name, source, mode), "written")
        except BaseException:
            if source.failure is not None:
                raise source.failure from None
            raise

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`. Directories remain."""
        for name in names:
            path = self._path(name)
            await self._call(name, lambda path=path: remove_file(path), "removed")  # type: ignore[misc]

    async def close(self) -> None:
        """Nothing to release."""

    async def _call(self, name: str, work: Callable[[], T], operation: str = "read") -> T:
        with translating(self._location, name, operation):
            return await asyncio.to_thread(self._checked, work, name)

    def _checked(self, work: Callable[[], T], name: str) -> T:
        check_root_directory(self.uri, self._required)
        if self._claim is not None:
            check_inside(self._root / name, self._claim)
        return work()

    async def _found(self, name: str) -> bool:
        return await self._call(name, lambda: os.path.lexists(self._root / name))

    async def _directory(self, name: str) -> Directory:
        return await self._call(name, lambda: names_in(self._root / name, name))

    def _path(self, name: str) -> Path:
        return self._root / checked_name(name)

    def _entry(self, name: str, status: os.stat_result) -> Entry:
        return Entry(name, status.st_size, _tag(status))

    def _walk(self, prefix: str) -> Iterator[Entry]:
        top = self._path(prefix) if prefix else self._root
        for name, status in files_below(top, frozenset(), self._claim):
            yield self._entry(join(prefix, name), status)

    def _children(self, prefix: str) -> Iterator[str]:
        top = self._path(prefix) if prefix else self._root
        for item in scan(top, self._claim):
            if item.is_dir():
                if next(files_below(Path(item.path), frozenset(), self._claim), None):
                    yield item.name + "/"
            elif is_object(item):
                yield item.name

    def _read(self, name: str, start: int, length: int | None, tag: str, size: int | None) -> memoryview:
        with self._path(name).open("rb", buffering=0) as file:
            entry = self._entry(name, os.fstat(file.fileno()))
            check_listed(self._location, entry, tag, size)
            count = max(0, entry.size - start) if length is None else length
            if start + count > entry.size:
                raise too_short(self._location, name, start, length, f"{entry.size} bytes")
            data = bytearray(count)
            read_exactly(file.fileno(), memoryview(data), start, str(self.uri / name))
            check_listed(self._location, self._entry(name, os.fstat(file.fileno())), tag, None)
        return memoryview(data)

    def _write(self, name: str, source: BodySource, mode: WriteMode) -> None:
        def fill(descriptor: int) -> None:
            while part := source.next_part():
                write_all(descriptor, part)

        exclusive = mode is WriteMode.CREATE
        publish_file(self._location, self._root, name, fill, exclusive=exclusive)


def required_directory(uri: Uri) -> Path:
    """The directory that must exist: the claim's mount, or the first one of a path."""
    return CLAIMS / uri.bucket if uri.scheme == CLAIM_SCHEME else ROOT / uri.key.partition("/")[0]


def _tag(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


def _status(path: Path) -> os.stat_result:
    status = path.stat()
    if path.is_dir():
        raise IsADirectoryError(str(path))
    return status

"""A directory of HDFS as a store.

A write goes to a temporary file, which the NameNode renames when it is complete: one step that either refuses
a name that is taken or replaces its file. Listings skip temporary files. Those left by a crash are not
removed, because another writer may be using them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from podferry.contract.errors import Corrupt, FerryError, NotFound, TemporaryError
from podferry.contract.manifest import Entry
from podferry.storage.errors.translate import StoreLocation, check_listed, store_error, too_short
from podferry.storage.hadoop.files import FileStatus, HadoopFiles
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.object_names import checked_name, is_temporary, join, temporary_name
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.retries import retry_changed
from podferry.storage.store import Body, WriteMode
from podferry.storage.timeouts_and_limits import Limits
from podferry.storage.walk import Directory, Walk, children_of
from podferry.storage.write_body import BodySource

NO_NAMES = {"", ".", ".."}
"""Of files and directories: they lead to the directory itself, or out of it."""
MAX_OBJECT_BYTES = 1 << 62
"""HDFS limits the blocks of a file (dfs.namenode.fs-limits.max-blocks-per-file), not what is sent at once."""


class HadoopStore:
    """See `Store`. Subclasses open the files.

    Attributes:
        refused_characters: As the engine declares them.
    """

    refused_characters: str

    exclusive_create = True
    multipart = None
    server_copy = None

    def __init__(self, location: StoreLocation, files: HadoopFiles, limits: Limits) -> None:
        self.uri, self._location = location.uri, location
        self._files, self._limits = files, limits

    @property
    def request_builder(self) -> RequestBuilder | None:
        """See `Store.request_builder`."""
        return None

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The listing is complete before the first entry is yielded."""
        walk = Walk(self.uri, self._read_directory, self._file_entry, self._limits.worker_threads)
        for entry in await walk.files(prefix):
            yield entry

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`; directories without files are skipped, as object stores have none."""
        return await children_of(self._read_directory, prefix, self._limits.worker_threads)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`. The tag consists of the file's modification time and size."""
        found = await self._file_entry(checked_name(name))
        if found is None:
            raise NotFound.of(f"{self.uri / name} is a directory, not a file", "", "Check the name")
        return found

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`. Tag and size are compared after the file was opened: it cannot change then."""
        return await retry_changed(lambda: self._read(name, start, length, tag, size), tag, size)

    async def _read(
        self, name: str, start: int, length: int | None, tag: str, size: int | None
    ) -> memoryview:
        path, count = self._path(checked_name(name)), length
        if not count:
            entry = await self.stat(name)
            check_listed(self._location, entry, tag, size)
            count = max(0, entry.size - start) if count is None else count
            if start + count > entry.size:
                raise too_short(self._location, name, start, length, f"{entry.size} bytes")
            tag = entry.tag  # another version may be opened, of which this would be a part
        data = await self._files.read(path, start, count) if count else memoryview(b"")
        if tag or size is not None or len(data) != count:
            entry = await self.stat(name)
            check_listed(self._location, entry, tag, size)
            if start + count > entry.size:
                raise too_short(self._location, name, start, length, f"{entry.size} bytes")
            if len(data) != count:
                raise store_error("cut", self._location, name, f"{len(data)} of {count} bytes")
        return data

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        if refused := set(self.refused_characters) & set(checked_name(name)):
            raise store_error("name", self._location, name, f"it has a {''.join(sorted(refused))}")
        source = BodySource(body, self._limits.part_bytes, MAX_OBJECT_BYTES)
        await source.finish(asyncio.ensure_future(self._write(name, source, mode)))

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`. Directories remain."""
        paths = [self._path(checked_name(name)) for name in names]
        await for_each_limited(paths, self._files.delete, self._limits.worker_threads)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._files.close()

    def _path(self, name: str) -> str:
        return f"/{join(self.uri.key, name)}"

    async def _read_directory(self, name: str) -> Directory:
        try:
            found = await self._files.list(self._path(name))
        except NotFound:
            return Directory(problem="there is no such directory")
        if len(found) == 1 and not found[0].name:
            return Directory(problem="it is a file")
        for each in found:
            if each.name in NO_NAMES or "/" in each.name:
                what = f"the server lists a name that is none in {self.uri / name}"
                raise Corrupt.of(what, ascii(each.name)[:200], "Check that a NameNode is at this address")
        files = [each for each in found if not each.is_directory and not is_temporary(each.name)]
        entries = tuple(each.entry(join(name, each.name)) for each in files)
        return Directory(entries, (), tuple(join(name, each.name) for each in found if each.is_directory))

    async def _file_entry(self, name: str) -> Entry | None:
        found = await self._files.status(self._path(name))
        return None if found.is_directory else found.entry(name)

    async def _write(self, name: str, source: BodySource, mode: WriteMode) -> None:
        temporary = self._path(temporary_name(name))
        try:
            sent = await self._files.create(temporary, source)
            written = self._complete(name, await self._files.status(temporary), sent)
            await self._publish(temporary, self._path(name), written, replace=mode is WriteMode.OVERWRITE)
        except BaseException:
            with suppress(FerryError):  # it may not exist; the first error counts
                await self._files.delete(temporary)
            raise

    def _complete(self, name: str, written: FileStatus, sent: int) -> FileStatus:
        """The same; raises if not all bytes were stored."""
        if written.size != sent:
            raise store_error("damaged", self._location, name, f"{written.size} of {sent} bytes stored")
        return written

    async def _publish(self, temporary: str, path: str, written: FileStatus, *, replace: bool) -> None:
        try:
            await self._files.rename(temporary, path, replace=replace)
        except (TemporaryError, NotFound):
            # The NameNode may have done it, and only its response, or that of a first attempt, is lost.
            if not await self._was_renamed(temporary, path, written):
                raise

    async def _was_renamed(self, temporary: str, path: str, written: FileStatus) -> bool:
        with suppress(FerryError):
            await self._files.status(temporary)
            return False
        with suppress(FerryError):
            return (await self._files.status(path)).tag == written.tag
        return False

"""Shares of Samba, Windows and Azure Files as stores: `smb://host/share/path`.

The share counts as the bucket: it must exist, while directories below it are created when needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

from podferry.contract.errors import BucketNotFound, FerryError, NotFound
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.names_in_flight import NamesInFlight
from podferry.storage.object_names import checked_name
from podferry.storage.smb.connections import Connections
from podferry.storage.smb.directories import Lister
from podferry.storage.smb.errors import translate_smb
from podferry.storage.smb.file_names import server_path
from podferry.storage.smb.login import Share
from podferry.storage.smb.messages import Access, Options, close, create, created
from podferry.storage.smb.options import SmbOptions, read_options
from podferry.storage.smb.reads import MAX_READ_BYTES, Reader, answered, entry_of, when_free
from podferry.storage.smb.writes import Writer
from podferry.storage.store import Body, Receive, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits
from podferry.storage.walk import Directory, Walk, children_of
from podferry.storage.write_body import BodySource, as_bytes

T = TypeVar("T")
CONCURRENT_CALLS = 16
"""Directories listed, or files deleted, at a time."""


CONCURRENT_STREAMS = 16
"""Each has one request of a MiB on its way, as much as two connections with some latency need."""


class SmbStore:
    """A directory of a share. Nothing is sent before the first call."""

    exclusive_create = True
    multipart = None
    server_copy = None
    request_builder = None
    stream_bytes = MAX_READ_BYTES

    def __init__(self, uri: Uri, config: StoreConfig = StoreConfig(), limits: Limits = LIMITS) -> None:  # noqa: B008
        self.uri = uri
        self._config, self._limits = config, limits
        options = read_options(uri, config.credentials, config.reload_credentials)
        self._location = StoreLocation(uri, credentials=options.names)
        self._base = server_path(uri.key.partition("/")[2])
        self._connections = Connections(self._options, limits)
        self._lister = Lister(uri)
        self._streams = asyncio.Semaphore(CONCURRENT_STREAMS)
        self._writer = Writer(self._location, self._base, self._lister)
        self._writing = NamesInFlight()

    def _options(self) -> SmbOptions:
        """For a new connection: a Secret may have changed."""
        reload = self._config.reload_credentials
        return read_options(self.uri, reload() if reload else self._config.credentials)

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The tag consists of the file's number, last write and size."""

        async def sized(name: str) -> Entry | None:
            raise AssertionError(f"a listing has all sizes: {name}")

        walk = Walk(self.uri, self._directory, sized, CONCURRENT_CALLS)
        for entry in await walk.files(prefix):
            yield entry

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`; directories without files are skipped, as object stores have none."""
        return await children_of(self._directory, prefix, CONCURRENT_CALLS)

    async def _directory(self, directory: str) -> Directory:
        path = self._path(directory) if directory else self._base
        return await self._run(directory, lambda share: self._lister.read(share, directory, path))

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        request = create(self._path(name), Access.ATTRIBUTES, options=Options.FILE)

        async def work(share: Share) -> Entry:
            """Open and close the file."""
            first, _ = await answered(share.connection, request, close())
            return entry_of(name, created(first).attributes)

        return await self._run(name, work)

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`."""
        reader = Reader(self._location, name, self._path(name), tag, size)
        return await self._run(name, lambda share: reader.read(share, start, length))

    async def stream(
        self, name: str, start: int, length: int, tag: str, size: int | None, receive: Receive
    ) -> None:
        """See `StreamingStore.stream`."""
        reader = Reader(self._location, name, self._path(name), tag, size)
        async with self._streams:
            await self._run(name, lambda share: reader.stream(share, start, length, receive))

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        self._path(name)
        async with self._writing.held(name):
            await self._write(name, body, mode)

    async def _write(self, name: str, body: Body, mode: WriteMode) -> None:
        if mode is WriteMode.CREATE:
            data = await asyncio.to_thread(as_bytes, body)
            await self._run(name, lambda share: self._writer.create(share, name, data), repeat=False)
            return
        source = BodySource(body, self._limits.part_bytes, 1 << 62)
        written = self._run(name, lambda share: self._writer.replace(share, name, source), repeat=False)
        await source.finish(asyncio.ensure_future(written))

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`. Directories remain."""
        checked = [(name, self._path(name)) for name in names]

        async def remove(item: tuple[str, str]) -> None:
            """Delete one file."""
            try:
                await self._run(item[0], lambda share: self._writer.delete(share, item[0]))
            except BucketNotFound:
                raise
            except NotFound:
                return

        await for_each_limited(checked, remove, CONCURRENT_CALLS)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._connections.close()

    def _path(self, name: str) -> str:
        path = server_path(checked_name(name))
        return f"{self._base}\\{path}" if self._base else path

    async def _run(self, name: str, work: Callable[[Share], Awaitable[T]], *, repeat: bool = True) -> T:
        try:
            if not repeat:
                return await self._connections.run(work, repeat=False)
            return await self._connections.run(lambda share: when_free(lambda: work(share)))
        except FerryError:
            raise
        except Exception as error:  # what is no bug is the server's or the connection's
            from podferry.storage.errors.vendor_fields import is_programming_error  # noqa: PLC0415 - for errors

            if is_programming_error(error):
                raise
            raise translate_smb(error, self._location, name) from error

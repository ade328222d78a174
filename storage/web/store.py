"""A directory of a web server that lists its files, or of one whose files are named; read only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import cached_property, partial
from typing import TypeVar
from urllib.parse import quote

from msgspec.structs import replace

from podferry.contract.errors import InvalidSpec, Unavailable
from podferry.contract.hidden_secrets import hide_query
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.credentials.web import names_of_web_credentials, refreshed_headers, refreshed_lines
from podferry.storage.errors.plain_http import requires_tls
from podferry.storage.errors.translate import (
    check_listed,
    store_error,
    store_location,
    translating,
    unused_keys,
)
from podferry.storage.http.confirmation import confirming
from podferry.storage.http.get_requests import web_get_builder
from podferry.storage.http.heads import HeadRequests
from podferry.storage.lazy_log import warn
from podferry.storage.object_names import checked_name, join
from podferry.storage.read_length import length_to_request
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.retries import retry_temporary
from podferry.storage.store import Body, Confirm, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits
from podferry.storage.walk import Directory, ListDirectory, Walk
from podferry.storage.web.directory import list_web_directory, web_file_info
from podferry.storage.web.file import WebFile
from podferry.storage.web.site import WebSite

T = TypeVar("T")
PREFIX = "HTTP_"
MAX_LINKS_SHOWN = 3
"""Of skipped links: enough to see of which kind they are."""


class WebStore:
    """See `podferry.storage.store.Store`; read only."""

    exclusive_create = False
    multipart = None
    server_copy = None

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        user, at, _ = uri.bucket.rpartition("@")
        if at:
            measured, remedy = (
                f"{user.partition(':')[0]}@",
                "Set HTTP_USERNAME and HTTP_PASSWORD in the Secret",
            )
            raise InvalidSpec.of("the URI of a web server must not name a user", measured, remedy)
        self.uri, self._config, self._limits = uri, config, limits
        self._url = f"{uri.scheme}://{uri.bucket}"
        names = names_of_web_credentials(PREFIX, self._url, config.credentials)
        unused = unused_keys(config.credentials, names, config.reload_credentials)
        self._location = store_location(uri, self._url, names, config.network, unused)
        headers = refreshed_headers(PREFIX, self._url, config)
        self._site = WebSite(self._location, config.network, limits, headers, config.allowed_sources)
        self._call_seconds = limits.connect_seconds + limits.stall_seconds + limits.retry_seconds
        self._answered = False

    @cached_property
    def request_builder(self) -> RequestBuilder | None:
        """See `Store.request_builder`."""
        lines = refreshed_lines(PREFIX, self._url, self._config)
        return web_get_builder(self._url, self.uri.key, self._config.network, lines)

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The listing is complete before the first entry is yielded."""
        if self.request_builder is None:
            walk = self._walk(self._entry, self._read_directory)
            found = await walk.files(prefix)
        else:
            async with self._heads(self.request_builder, self._limits.worker_threads) as heads:
                walk = self._walk(partial(self._head_entry, heads), partial(self._sized_directory, heads))
                found = await walk.files(prefix)
        self._report_skipped(walk.skipped)
        for entry in found:
            yield entry

    def _walk(self, stat: Callable[[str], Awaitable[Entry | None]], list_directory: ListDirectory) -> Walk:
        return Walk(self.uri, list_directory, stat, self._limits.worker_threads)

    def _heads(self, builder: RequestBuilder, connections: int) -> HeadRequests:
        return HeadRequests(builder, connections, self._limits.stall_seconds)

    async def _sized_directory(self, heads: HeadRequests, name: str) -> Directory:
        """A directory, with the entries of those files whose responses are plain."""
        found = await self._read_directory(name)
        linked = set(found.directories)
        with translating(self._location, name, answered=self._answered):
            entries = await heads.entries([each for each in found.unsized if each not in linked])
        sized = {entry.name for entry in entries}
        unsized = tuple(each for each in found.unsized if each not in sized)
        return replace(found, entries=tuple(entries), unsized=unsized)

    async def _head_entry(self, heads: HeadRequests, name: str) -> Entry | None:
        """The entry of a file by a plain response; for any other, the general client looks closer."""
        with translating(self._location, name, answered=self._answered):
            found = await heads.entry(checked_name(name))
        return found or await self._entry(name)

    async def _read_directory(self, name: str) -> Directory:
        url = self._file_url(name)
        work, limits = partial(_listed, self._site, name, url), self._limits
        again = partial(self._call, name, work, limits.request_seconds)
        return await retry_temporary(again, limits.retries + 1, limits.retry_seconds)

    async def _entry(self, name: str) -> Entry | None:
        """The entry of a file, or None if it is a directory."""
        url = self._file_url(name)
        info = await self._call(name, lambda: web_file_info(self._site, name, url), self._call_seconds)
        if info.is_directory:
            return None
        if info.size is None:
            what = f"the server does not state the size of {self.uri / name}"
            raise InvalidSpec.of(what, "", "Have it send Content-Length, or copy the data to another store")
        return Entry(name, info.size, info.tag)

    def _file_url(self, name: str) -> str:
        """The encoded address of a name, without a slash at its end."""
        return f"{self._url}/{quote(join(self.uri.key, name))}".rstrip("/")

    def _report_skipped(self, links: list[str]) -> None:
        if links:
            warn(
                "links of index pages are not followed",
                below=str(self.uri),
                count=len(links),
                examples=", ".join(map(hide_query, links[:MAX_LINKS_SHOWN])),
                remedy="link to files and directories by their names, without a query or another host",
            )

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`. An index does not show which directories are empty: they are included."""
        found = await self._read_directory(prefix)
        below = prefix and f"{prefix}/"
        files = {_first(name.removeprefix(below)) for name in found.unsized}
        directories = {_first(f"{name.removeprefix(below)}/") for name in found.directories}
        return sorted(files | directories)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        checked_name(name)
        if self.request_builder is None:
            return await self._stat(name)
        async with self._heads(self.request_builder, 1) as heads:
            return self._file(name, await self._head_entry(heads, name))

    async def _stat(self, name: str) -> Entry:
        return self._file(name, await self._entry(name))

    def _file(self, name: str, found: Entry | None) -> Entry:
        if found is None:
            raise store_error("missing", self._location, name, "a directory")
        return found

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`. Tag and size are compared after the bytes have arrived."""
        checked_name(name)
        count = await length_to_request(self._location, self._stat, name, start, length, (tag, size))
        if count == 0:
            return memoryview(b"")
        file = WebFile(self._site, name, self._file_url(name))
        data = await self._call(name, lambda: file.read(start, count, size), self._limits.request_seconds)
        if tag or size is not None:
            check_listed(self._location, await self._stat(name), tag, size)
        return memoryview(data)

    def confirming(self) -> AbstractAsyncContextManager[Confirm]:
        """See `ConfirmingStore.confirming`."""
        return confirming(self._location, self.request_builder, self._limits, self._stat)

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """Raises `InvalidSpec`: web servers are only read."""
        raise store_error("unsupported", self._location, checked_name(name), "web servers are read only")

    async def delete(self, names: Iterable[str]) -> None:
        """Raises `InvalidSpec`: web servers are only read."""
        raise store_error("unsupported", self._location, "", "web servers are read only")

    async def close(self) -> None:
        """Close the connections."""
        await self._site.close()

    async def _call(self, name: str, work: Callable[[], Awaitable[T]], seconds: float) -> T:
        try:
            with translating(self._location, name, answered=self._answered):
                async with asyncio.timeout(seconds):
                    found = await work()
        except Unavailable as error:
            from podferry.storage.errors.vendor_fields import vendor_fields_of  # noqa: PLC0415 - for errors only

            fields = vendor_fields_of(error.__cause__ or error)
            if not self._answered and await requires_tls(self._location, fields):
                raise store_error("tls port", self._location, name) from error
            raise
        self._answered = True
        return found


async def _listed(site: WebSite, name: str, url: str) -> Directory:
    try:
        return await list_web_directory(site, name, url, certain=bool(name))
    except (FileNotFoundError, NotADirectoryError) as error:
        return Directory(problem=error.strerror or str(error))


def _first(name: str) -> str:
    """The first part of a name, with a slash if there are more."""
    first, slash, _ = name.partition("/")
    return first + slash

"""A directory of a WebDAV server: `webdav://host/path`, or `webdavs://` over TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from functools import cached_property, partial
from typing import TypeVar

import aiohttp

from podferry.contract.errors import AccessDenied, InvalidSpec, NotFound
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.credentials.web import names_of_web_credentials, refreshed_headers, refreshed_lines
from podferry.storage.errors.translate import (
    check_listed,
    store_error,
    store_location,
    translating,
    unused_keys,
)
from podferry.storage.http.confirmation import confirming
from podferry.storage.http.get_requests import web_get_builder
from podferry.storage.http.page_detection import is_html
from podferry.storage.http.session import RangeReader, WebSession
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.object_names import checked_name, join
from podferry.storage.read_length import length_to_request
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.retries import retry_temporary
from podferry.storage.same_names import SameNames
from podferry.storage.store import Body, Confirm, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits
from podferry.storage.walk import Directory, Walk, children_of
from podferry.storage.webdav.client import NOT_FOUND, DavClient
from podferry.storage.webdav.writes import DavWrites
from podferry.storage.write_body import BodySource

T = TypeVar("T")
PREFIX = "WEBDAV_"
NO_DIRECTORY = (NOT_FOUND, 400, 409)
"""What servers say of a path below a file, next to 404."""


class WebDavStore:
    """See `podferry.storage.store.Store`. A directory without files does not exist for it."""

    exclusive_create = True
    multipart = None
    server_copy = None

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        if "@" in uri.bucket:
            remedy = "Set WEBDAV_USERNAME and WEBDAV_PASSWORD in the Secret"
            raise InvalidSpec.of("the URI of a WebDAV server must not name a user", uri.scheme, remedy)
        self.uri, self._config, self._limits = uri, config, limits
        self._url = f"{'https' if uri.scheme == 'webdavs' else 'http'}://{uri.bucket}"
        names = names_of_web_credentials(PREFIX, self._url, config.credentials)
        unused = unused_keys(config.credentials, names, config.reload_credentials)
        self._location = store_location(uri, self._url, names, config.network, unused)
        headers = refreshed_headers(PREFIX, self._url, config)
        self._session = WebSession(self._url, config.network, limits, headers, config.allowed_sources)
        self._client = DavClient(uri, self._session, self._location, limits)
        self._writes = DavWrites(self._client)
        self._names = SameNames(uri, self._found, self._directory)
        self._answered = False

    @cached_property
    def request_builder(self) -> RequestBuilder | None:
        """See `Store.request_builder`."""
        lines = refreshed_lines(PREFIX, self._url, self._config)
        return web_get_builder(self._url, self.uri.key, self._config.network, lines, pages=False)

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The listing is complete before the first entry is yielded."""
        walk = Walk(self.uri, self._directory, self._entry, self._limits.worker_threads)
        for entry in await walk.files(prefix):
            yield entry

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        return await children_of(self._directory, prefix, self._limits.worker_threads)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        found = await self._entry(checked_name(name))
        if found is None:
            raise store_error("missing", self._location, name, "a directory")
        return found

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`. Tag and size are compared after the bytes have arrived."""
        checked_name(name)
        count = await length_to_request(self._location, self.stat, name, start, length, (tag, size))
        if count == 0:
            return memoryview(b"")
        return memoryview(await self._call(name, lambda: self._range(name, start, count, tag, size)))

    async def _range(self, name: str, start: int, length: int | None, tag: str, size: int | None) -> bytes:
        try:
            found = await RangeReader(self._session, self._location).read(
                name, self._client.url(name), start, length
            )
        except aiohttp.ClientResponseError:
            await self.stat(name)  # servers refuse to send a directory in many ways
            raise
        if tag or size is not None or is_html(found.kind) or found.size is None:
            seen = await self.stat(name)  # it may also be the page of a directory
            check_listed(self._location, seen, tag, size)
            if tag and found.tag.strip('"') not in {"", tag.strip('"')}:
                check_listed(self._location, Entry(name, seen.size, found.tag), tag, size)
            if found.size is not None:
                check_listed(self._location, Entry(name, found.size), "", seen.size)
        return found.data

    def confirming(self) -> AbstractAsyncContextManager[Confirm]:
        """See `ConfirmingStore.confirming`."""
        return confirming(self._location, self.request_builder, self._limits, self.stat)

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`. While a file is replaced, readers may find none for a moment."""
        checked_name(name)
        source = BodySource(body, self._limits.part_bytes, self._limits.max_object_bytes)
        exclusive = mode is WriteMode.CREATE
        async with self._names.writing(name):
            work = self._call(name, lambda: self._writes.write(name, source, exclusive=exclusive), None)
            await source.finish(asyncio.ensure_future(work))

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`. Directories remain: a server would remove what is in them."""
        ordered = [checked_name(name) for name in names]
        await for_each_limited(ordered, self._delete, self._limits.worker_threads)

    async def _delete(self, name: str) -> None:
        with suppress(NotFound):
            if await self._entry(name) is not None:
                # Another writer may just have it locked.
                await self._repeated(name, lambda: self._client.delete(name))

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def _entry(self, name: str) -> Entry | None:
        return await self._repeated(name, lambda: self._client.entry(name))

    async def _found(self, name: str) -> bool:
        path = join(self.uri.key, name)
        try:
            return await self._repeated(name, lambda: self._client.is_directory(path)) is not None
        except AccessDenied:  # some servers do not say what is missing
            return False

    async def _directory(self, name: str) -> Directory:
        try:
            return await self._repeated(name, lambda: self._client.list_directory(name))
        except NotFound as error:
            return Directory(problem="; ".join(problem.measured for problem in error.problems))

    async def _repeated(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        again = partial(self._call, name, work)
        return await retry_temporary(again, self._limits.retries + 1, self._limits.retry_seconds)

    async def _call(self, name: str, work: Callable[[], Awaitable[T]], seconds: float | None = 0.0) -> T:
        limit = self._limits.request_seconds if seconds == 0.0 else seconds
        with translating(self._location, name, answered=self._answered):
            async with asyncio.timeout(limit):
                found = await work()
        self._answered = True
        return found

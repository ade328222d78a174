"""S3, compatible services, and Azure, through obstore."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import obstore

from podferry.contract.errors import Corrupt, FerryError
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.azure.endpoint import AZURE_SCHEMES, azure_access
from podferry.storage.errors.translate import check_listed, store_error, too_short
from podferry.storage.http.page_detection import PAGE_SUFFIXES, is_html
from podferry.storage.multipart import MultipartStore
from podferry.storage.object_names import checked_name, child_names
from podferry.storage.obstore.bucket import OBSTORE_ERRORS, ObstoreBucket, is_unanswered
from podferry.storage.obstore.listing import Lister, ObstoreLister
from podferry.storage.obstore.server_copy import ObstoreServerCopy
from podferry.storage.obstore.writes import ObstoreWrites
from podferry.storage.read_length import length_to_request
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.server_copy import ServerCopy, StoredObject
from podferry.storage.store import Body, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits


class ObstoreStore:
    """An object store behind obstore."""

    exclusive_create = True

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        self.uri, self._config, self._limits = uri, config, limits
        self._bucket = ObstoreBucket(uri, config, limits)
        self._writes = ObstoreWrites(self._bucket, limits)

    @cached_property
    def multipart(self) -> MultipartStore | None:
        """See `Store.multipart`. Its modules are loaded here, as most stores are only read."""
        if self.uri.scheme in AZURE_SCHEMES:
            blocks = importlib.import_module("podferry.storage.azure.blocks")
            uploads: MultipartStore = blocks.AzureBlocks(azure_access(self.uri, self._config), self._limits)
            return uploads
        module = importlib.import_module("podferry.storage.s3.multipart")
        multipart: MultipartStore | None = module.s3_multipart(self.uri, self._config, self._limits)
        return multipart

    @cached_property
    def server_copy(self) -> ServerCopy | None:
        """See `Store.server_copy`: S3 only."""
        return None if self.uri.scheme in AZURE_SCHEMES else ObstoreServerCopy(self._bucket, self._describe)

    async def _describe(self, name: str) -> StoredObject:
        """An object's size and, if requests of our own reach the store, its checksum."""
        multipart: Any = self.multipart
        if multipart is None:
            return StoredObject((await self.stat(name)).size)
        module = importlib.import_module("podferry.storage.s3.stored_object")
        found: StoredObject = await module.describe(multipart.client, name)
        return found

    @cached_property
    def request_builder(self) -> RequestBuilder | None:
        """See `Store.request_builder`. Its module is loaded here, as not every store is read so."""
        if self.uri.scheme in AZURE_SCHEMES:
            azure = importlib.import_module("podferry.storage.azure.get_requests")
            of_azure: RequestBuilder | None = azure.get_builder_for(
                azure_access(self.uri, self._config), self._limits
            )
            return of_azure
        s3 = importlib.import_module("podferry.storage.s3.get_requests")
        builder: RequestBuilder | None = s3.get_builder_for(s3_access(self.uri, self._config))
        return builder

    @cached_property
    def _lister(self) -> Lister:
        """Requests of our own, which show what obstore hides, where they find the credentials."""
        if self.uri.scheme not in AZURE_SCHEMES:
            module = importlib.import_module("podferry.storage.s3.listing")
            lister: Lister | None = module.s3_lister(
                self.uri, self._config, self._limits, self._bucket.listing_error
            )
            if lister is not None:
                return lister
        return ObstoreLister(self._bucket, self._limits.request_seconds)

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The tag is the ETag as it is sent, with its quotation marks."""
        await self._bucket.prepare()
        try:  # not `call`: when the loop ends, asyncio closes its generator and this one in any order
            async for page in self._lister.pages(prefix):
                self._bucket.exists = True
                for entry in page:
                    yield entry
        except OBSTORE_ERRORS as error:
            raise await self._bucket.listing_error(error, prefix) from error

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        objects, directories = await self.list_directory(prefix)
        return child_names((entry.name for entry in objects), directories)

    async def list_directory(self, prefix: str = "") -> tuple[list[Entry], list[str]]:
        """See `podferry.storage.listing.by_directory.ListsByDirectory`."""
        async with self._bucket.call("", "listed"):
            return await self._lister.list_directory(prefix)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        async with self._bucket.call(name):
            item = await obstore.head_async(self._bucket.store, self._bucket.key(checked_name(name)))
        return self._bucket.entry(item)

    async def stat_file(self, name: str) -> Entry:
        """See `podferry.storage.listing.single_object.StatsFile`."""
        async with self._bucket.call(name):
            key = self._bucket.key(checked_name(name))
            result = await obstore.get_async(self._bucket.store, key, options={"head": True})
        entry, content_type = self._bucket.entry(result.meta), str(result.attributes.get("Content-Type", ""))
        if is_html(content_type) and PurePosixPath(name).suffix.lower() not in PAGE_SUFFIXES:
            evidence = f"{content_type[:60]}, {entry.size:,} bytes"
            raise store_error("object page", self._bucket.location, name, evidence)
        return entry

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`."""
        await self._bucket.prepare()
        key = self._bucket.key(checked_name(name))
        location = self._bucket.location
        length = await length_to_request(location, self.stat, name, start, length, (tag, size))
        if length == 0:
            return memoryview(b"")
        options: obstore.GetOptions = {"if_match": tag} if tag else {}
        if length is not None:
            options["range"] = (start, start + length)
        try:
            result = await obstore.get_async(self._bucket.store, key, options=options)
            check_listed(location, Entry(name, result.meta["size"]), "", size)
            view = memoryview(await result.buffer_async())
        except OBSTORE_ERRORS as error:
            raise await self._read_error(error, name, start, length) from error
        self._bucket.exists = True
        expected = result.meta["size"] if length is None else length
        if len(view) != expected:
            raise too_short(location, name, start, expected, f"{len(view)} bytes came")
        return view

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        write = self._writes.create if mode is WriteMode.CREATE else self._writes.overwrite
        await write(name, body)

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`."""
        await self._writes.delete(names)

    async def close(self) -> None:
        """Close the connections of multipart uploads; obstore closes its own with the client."""
        multipart = self.__dict__.get("multipart")
        if multipart is not None:
            await multipart.close()

    async def _read_error(self, error: Exception, name: str, start: int, length: int | None) -> FerryError:
        """The error of a read. Azure has no error of its own for a range past the end: the size decides."""
        found = await self._bucket.translated(error, name)
        if is_unanswered(error) and length is not None:
            with suppress(FerryError):
                entry = await self.stat(name)
                if start + length > entry.size:
                    return too_short(self._bucket.location, name, start, length, f"{entry.size} bytes")
        return (
            too_short(self._bucket.location, name, start, length, "past its end")
            if isinstance(found, Corrupt)
            else found
        )

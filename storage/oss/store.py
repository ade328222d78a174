"""A bucket of Alibaba Cloud OSS."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from podferry.contract.errors import Corrupt
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import too_short
from podferry.storage.object_names import checked_name, child_names
from podferry.storage.oss.endpoint import oss_access
from podferry.storage.read_length import length_to_request
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.store import Body, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits

if TYPE_CHECKING:
    from podferry.storage.oss.client import OssClient
    from podferry.storage.oss.multipart import OssMultipart
    from podferry.storage.oss.server_copy import OssServerCopy
    from podferry.storage.oss.writes import OssWrites
    from podferry.storage.s3.listing import S3Lister


class OssStore:
    """A bucket of OSS, or the part of it below the URI's key.

    Alibaba's client is loaded by the first call: the connection pool needs none of it.
    """

    exclusive_create = True

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        self.uri, self._limits = uri, limits
        self._access = oss_access(uri, config)

    @cached_property
    def _client(self) -> OssClient:
        client: OssClient = importlib.import_module("podferry.storage.oss.client").OssClient(
            self._access, self._limits
        )
        return client

    @cached_property
    def multipart(self) -> OssMultipart:
        """See `Store.multipart`."""
        module = importlib.import_module("podferry.storage.oss.multipart")
        multipart: OssMultipart = module.OssMultipart(self._client, self._limits)
        return multipart

    @cached_property
    def server_copy(self) -> OssServerCopy:
        """See `Store.server_copy`."""
        module = importlib.import_module("podferry.storage.oss.server_copy")
        copies: OssServerCopy = module.OssServerCopy(self._client)
        return copies

    @cached_property
    def request_builder(self) -> RequestBuilder | None:
        """See `Store.request_builder`."""
        module = importlib.import_module("podferry.storage.oss.get_requests")
        builder: RequestBuilder | None = module.get_builder_for(self._access)
        return builder

    @cached_property
    def _lister(self) -> S3Lister:
        lister: S3Lister = importlib.import_module("podferry.storage.oss.listing").oss_lister(self._client)
        return lister

    @cached_property
    def _writes(self) -> OssWrites:
        module = importlib.import_module("podferry.storage.oss.writes")
        writes: OssWrites = module.OssWrites(self._client, self.multipart, self._limits)
        return writes

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The tag is the ETag as it is sent, with its quotation marks."""
        async for page in self._lister.pages(prefix):
            for entry in page:
                yield entry

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        objects, directories = await self.list_directory(prefix)
        return child_names((entry.name for entry in objects), directories)

    async def list_directory(self, prefix: str = "") -> tuple[list[Entry], list[str]]:
        """See `podferry.storage.listing.by_directory.ListsByDirectory`."""
        return await self._lister.list_directory(prefix)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        module = importlib.import_module("podferry.storage.oss.reads")
        entry: Entry = await module.stat(self._client, checked_name(name))
        return entry

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`."""
        checked_name(name)
        location = self._access.location
        length = await length_to_request(location, self.stat, name, start, length, (tag, size))
        if length == 0:
            return memoryview(b"")
        module = importlib.import_module("podferry.storage.oss.reads")
        try:
            view: memoryview = await module.read(self._client, name, start, length, tag, size)
        except Corrupt as error:
            raise too_short(location, name, start, length, "past its end") from error
        return view

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        write = self._writes.create if mode is WriteMode.CREATE else self._writes.overwrite
        await write(name, body)

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`."""
        await self._writes.delete(names)

    async def close(self) -> None:
        """Close the connections."""
        client = self.__dict__.get("_client")
        if client is not None:
            await client.close()

"""S3, what speaks S3, and Azure, through obstore.

A create is one conditional request. Its answer may be lost: then the engine's own repetition of it may meet
the object that it wrote itself and raise `AlreadyExists`, and a caller that must know compares contents.
Where the connection broke and nothing is certain, `Unavailable` is raised.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from functools import cached_property
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, GenericError

from podferry.contract.errors import Changed, Corrupt, CredentialsMissing, FerryError, NotFound
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.azure.endpoint import AZURE_SCHEMES, azure_access
from podferry.storage.errors.translate import error_kind, store_error, translate
from podferry.storage.errors.vendor_fields import vendor_fields_of
from podferry.storage.limits import LIMITS, Limits
from podferry.storage.multipart import MultipartStore
from podferry.storage.object_names import checked_name, join
from podferry.storage.obstore.client import obstore_client
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.store import Body, StoreConfig, WriteMode
from podferry.storage.write_body import BodySource, as_bytes

PAGE_OBJECTS = 1000
"""Objects of one listing request and names of one deletion: the most that S3 takes."""
OBSTORE_ERRORS = (BaseError, FileNotFoundError, ValueError, OSError)
"""What obstore raises: its own tree, and two builtins that it documents."""


class ObstoreStore:
    """An object store behind obstore; the Python side holds no state but what it has learned."""

    exclusive_create = True

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        self.uri = uri
        self._client = obstore_client(uri, config, limits)
        self._store = self._client.store
        self._limits = limits
        self._bucket_seen = False
        self._ready = not self._client.metadata
        self._config = config

    @cached_property
    def multipart(self) -> MultipartStore | None:
        """See `Store.multipart`: S3's alone. What it needs is loaded here, as most stores are only read."""
        if self.uri.scheme in AZURE_SCHEMES:
            return None
        engine = importlib.import_module("podferry.storage.s3.multipart")
        found: MultipartStore | None = engine.s3_multipart(self.uri, self._config, self._limits)
        return found

    @cached_property
    def request_builder(self) -> RequestBuilder | None:
        """See `Store.request_builder`. What makes them is loaded here, as not every store is read so."""
        azure = self.uri.scheme in AZURE_SCHEMES
        maker = importlib.import_module(
            "podferry.storage." + ("azure.get_builder" if azure else "s3.get_builder")
        )
        access = azure_access(self.uri, self._config) if azure else s3_access(self.uri, self._config)
        found: RequestBuilder | None = maker.get_builder_for(access)
        return found

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The tag is the ETag as it is sent, with its quotation marks.

        obstore drops the slash that ends a directory marker's key, so an empty object may be one; the
        directories that hold empty objects are listed once more, by delimiter, at the end.
        """
        await self._prepare()
        top, empty = self._key(prefix), []
        try:
            async for page in obstore.list(self._store, top or None, chunk_size=PAGE_OBJECTS):
                self._bucket_seen = True
                for item in page:
                    entry = self._entry(item["path"], item["size"], item["e_tag"])
                    if entry.size:
                        yield entry
                    elif item["path"] != top:
                        empty.append(entry)
        except OBSTORE_ERRORS as error:
            raise await self._translated(error, prefix) from error
        for entry in await self._without_markers(empty):
            yield entry

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        objects, directories = await self.list_directory(prefix)
        names = (entry.name.rpartition("/")[2] for entry in objects)
        return sorted([*names, *(name + "/" for name in directories)])

    async def list_directory(self, prefix: str = "") -> tuple[list[Entry], list[str]]:
        """See `podferry.storage.listing.by_directory.ListsByDirectory`."""
        return await self._list_directory(self._key(prefix))

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        await self._prepare()
        try:
            item = await obstore.head_async(self._store, self._key(checked_name(name)))
        except OBSTORE_ERRORS as error:
            raise await self._translated(error, name) from error
        self._bucket_seen = True
        return self._entry(item["path"], item["size"], item["e_tag"])

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`."""
        await self._prepare()
        checked_name(name)
        if length == 0 or (start and length is None):
            entry = await self.stat(name)
            self._same_size(name, size, entry.size)
            length = self._rest(entry, start, length, tag)
            if not length:
                return memoryview(b"")
        options: obstore.GetOptions = {"if_match": tag} if tag else {}
        if length is not None:
            options["range"] = (start, start + length)
        try:
            result = await obstore.get_async(self._store, self._key(name), options=options)
            self._same_size(name, size, result.meta["size"])
            view = memoryview(await result.buffer_async())
        except OBSTORE_ERRORS as error:
            raise await self._unread(error, name, start, length) from error
        self._bucket_seen = True
        expected = result.meta["size"] if length is None else length
        if len(view) != expected:
            raise self._short(name, start, expected, f"{len(view)} bytes came")
        return view

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`. Chunked bodies that fill a part go up in parts, which abort on a failure."""
        await self._prepare()
        key = self._key(checked_name(name))
        if mode is WriteMode.CREATE:
            await self._create(name, key, await asyncio.to_thread(as_bytes, body))
            return
        source = BodySource(body, self._limits.part_bytes, self._limits.max_object_bytes)
        small = await source.read_small()
        upload = asyncio.ensure_future(self._upload(key, small, source))
        try:
            await _finished(upload, source)
        except OBSTORE_ERRORS as error:
            if source.failure is not None:
                raise source.failure from None
            raise await self._translated(error, name) from error
        finally:
            # A failure's traceback holds this frame, and the task the failure: a circle with the body in it.
            del upload, small

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`."""
        await self._prepare()
        keys = [self._key(checked_name(name)) for name in names]
        for start in range(0, len(keys), PAGE_OBJECTS):
            await self._delete(keys[start : start + PAGE_OBJECTS])

    async def close(self) -> None:
        """Give back the connections of uploads in parts; obstore gives back its own with the client."""
        multipart = self.__dict__.get("multipart")
        if multipart is not None:
            await multipart.close()

    def _key(self, name: str) -> str:
        if "\\" in name and self.uri.scheme in AZURE_SCHEMES:
            # Azure stores it as a slash, so that another name would come back.
            raise store_error("name", self._client.location, name)
        return join(self.uri.key, name)

    def _entry(self, key: str, size: int, tag: str | None) -> Entry:
        name = key[len(self.uri.key) + 1 :] if self.uri.key else key
        # Azure leaves the quotation marks out in listings, and sends them for a single object.
        return Entry(name, size, f'"{tag}"' if tag and tag.isalnum() else tag or "")

    async def _prepare(self) -> None:
        """Ask the metadata service for a connection first: off a cloud it is a black hole."""
        if self._ready:
            return
        address = urlsplit(self._client.metadata)
        try:
            async with asyncio.timeout(self._limits.metadata_seconds):
                _, writer = await asyncio.open_connection(address.hostname, address.port or 80)
        except OSError as error:  # TimeoutError is one
            missing = store_error(
                "credentials", self._client.location, evidence=f"no answer from {address.netloc}"
            )
            raise CredentialsMissing(*missing.problems) from error
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self._ready = True

    async def _list_directory(self, top: str) -> tuple[list[Entry], list[str]]:
        """The objects directly below a key, and the last parts of the directories' names."""
        await self._prepare()
        try:
            found = await obstore.list_with_delimiter_async(self._store, top or None)
        except OBSTORE_ERRORS as error:
            raise await self._translated(error) from error
        self._bucket_seen = True
        items = (item for item in found["objects"] if item["path"] != top)
        objects = [self._entry(item["path"], item["size"], item["e_tag"]) for item in items]
        return objects, [path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"]]

    async def _without_markers(self, empty: list[Entry]) -> list[Entry]:
        real: dict[str, frozenset[str]] = {}
        for parent in sorted({entry.name.rpartition("/")[0] for entry in empty}):
            objects, _ = await self._list_directory(self._key(parent))
            real[parent] = frozenset(entry.name for entry in objects)
        return [entry for entry in empty if entry.name in real[entry.name.rpartition("/")[0]]]

    def _same_size(self, name: str, listed: int | None, now: int) -> None:
        if listed not in {None, now}:
            measured = f"{now} bytes, {listed} were listed"
            raise Changed.of(f"{self.uri / name} is no longer the object that was listed", measured)

    def _rest(self, entry: Entry, start: int, length: int | None, tag: str) -> int:
        if tag and entry.tag != tag:
            measured = f"tag {entry.tag}, was {tag}"
            raise Changed.of(f"{self.uri / entry.name} is no longer the object that was listed", measured)
        if start + (length or 0) > entry.size:
            raise self._short(entry.name, start, length, f"{entry.size} bytes")
        return entry.size - start if length is None else length

    def _short(self, name: str, start: int, length: int | None, found: str) -> Corrupt:
        asked = "the rest" if length is None else str(length)
        return Corrupt.of(
            f"{self.uri / name} ends before the bytes that were asked for",
            f"{found}; asked for {asked} from {start}",
            "List it again",
        )

    async def _unread(self, error: Exception, name: str, start: int, length: int | None) -> FerryError:
        """The error of a read. A range past the end has no answer of its own on Azure: the size decides."""
        found = await self._translated(error, name)
        silent = type(error) is GenericError and not vendor_fields_of(error).status
        if silent and length is not None:
            with suppress(FerryError):
                entry = await self.stat(name)
                if start + length > entry.size:
                    return self._short(name, start, length, f"{entry.size} bytes")
        return self._short(name, start, length, "past its end") if isinstance(found, Corrupt) else found

    async def _upload(self, key: str, small: bytes | None, source: BodySource) -> None:
        if small is not None:
            await obstore.put_async(self._store, key, small, use_multipart=False)
        else:
            await obstore.put_async(
                self._store,
                key,
                source.stream(),
                chunk_size=self._limits.part_bytes,
                max_concurrency=self._limits.concurrent_parts,
            )
        self._bucket_seen = True

    async def _create(self, name: str, key: str, data: bytes) -> None:
        try:
            await obstore.put_async(self._store, key, data, mode="create")
        except OBSTORE_ERRORS as error:
            uncertain = type(error) is GenericError and not vendor_fields_of(error).status
            if uncertain and await self._taken_by_another(name, len(data)):
                raise store_error("exists", self._client.location, name) from error
            raise await self._translated(error, name) from error
        self._bucket_seen = True

    async def _taken_by_another(self, name: str, size: int) -> bool:
        """Whether what is there cannot be ours. Some servers close the connection of a refused create."""
        try:
            return (await self.stat(name)).size != size
        except FerryError:
            return False

    async def _delete(self, keys: list[str]) -> None:
        try:
            await obstore.delete_async(self._store, keys)
        except FileNotFoundError:
            # Azure stops at the first name that is missing; S3 answers so for a missing bucket alone.
            await asyncio.gather(*(self._delete_one(key) for key in keys))
        except OBSTORE_ERRORS as error:
            raise await self._translated(error) from error
        else:
            self._bucket_seen = True

    async def _delete_one(self, key: str) -> None:
        try:
            await obstore.delete_async(self._store, key)
        except OBSTORE_ERRORS as error:
            found = await self._translated(error)
            if type(found) is not NotFound:
                raise found from error

    async def _translated(self, error: Exception, name: str = "") -> FerryError:
        """The error, after asking the bucket where a missing object may be a missing bucket."""
        found = translate(error, self._client.location, name)
        kind = error_kind(vendor_fields_of(error))
        if kind != "missing" or self._bucket_seen:
            return found
        if not name:
            return store_error("bucket", self._client.location)
        return await self._probe() or found

    async def _probe(self) -> FerryError | None:
        """What is wrong with the bucket, or None. A refused listing says nothing: reading may be allowed."""
        try:
            await anext(aiter(obstore.list(self._store, self.uri.key or None, chunk_size=1)), None)
        except OBSTORE_ERRORS as error:
            kind = error_kind(vendor_fields_of(error))
            if kind == "denied":
                return None
            return (
                store_error("bucket", self._client.location)
                if kind == "missing"
                else translate(error, self._client.location)
            )
        self._bucket_seen = True
        return None


async def _finished(upload: asyncio.Future[None], source: BodySource) -> None:
    """Wait for an upload; a cancellation makes its body fail, so that parts that were sent are aborted."""
    try:
        await asyncio.shield(upload)
    except asyncio.CancelledError:
        source.stop()
        with suppress(Exception):  # the cancellation is what the caller gets
            await upload
        raise
    finally:
        del upload  # as in `write`

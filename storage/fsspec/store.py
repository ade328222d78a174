"""All other stores, through an fsspec file system.

File systems are called in threads. Those that run on fsspec's own loop, and those in memory or on disk, serve
calls in parallel; others have one connection, so their calls queue.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

from podferry.contract.errors import BucketNotFound, FerryError, InvalidSpec, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.plain_http import requires_tls
from podferry.storage.errors.translate import store_error, translating
from podferry.storage.fsspec.directories import FsspecDirectories
from podferry.storage.fsspec.get_requests import get_builder_for, google_address, google_token_headers
from podferry.storage.fsspec.options import GOOGLE_SCHEMES, OBJECT_STORE_SCHEMES, options_for
from podferry.storage.fsspec.reads import FsspecReads
from podferry.storage.fsspec.server_copy import SERVER_COPY_SCHEMES, FsspecServerCopy
from podferry.storage.fsspec.writes import FsspecWrites
from podferry.storage.gcs.client import GcsClient, NotFromGcs
from podferry.storage.gcs.listing import list_objects, parse_page
from podferry.storage.gcs.parts import GcsParts
from podferry.storage.http.foreign_response import PAGE_STATUSES
from podferry.storage.http.store_client import error_response
from podferry.storage.multipart import MultipartStore
from podferry.storage.object_names import checked_name
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.server_copy import ServerCopy
from podferry.storage.store import Body, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits
from podferry.storage.walk import Directory, Walk, children_of
from podferry.storage.write_body import BodySource

T = TypeVar("T")

THREAD_SAFE_SCHEMES = ("memory", "file", "local")
"""File systems without a connection: several threads may call them in parallel."""


def open_fsspec(uri: Uri, config: StoreConfig, limits: Limits) -> FsspecStore:
    """Open the store of any scheme that fsspec knows.

    Raises:
        UnknownScheme: Its package is not installed.
    """
    if uri.scheme in GOOGLE_SCHEMES:
        # Read when gcsfs is imported: with it, requests for the kind of a bucket go over gRPC, without the CA
        # bundles and proxies of the store, and an emulator that has none delays the first call by a minute.
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        if find_spec("gcsfs") is None:
            raise _missing_package(uri)
        return FsspecStore(uri, config, limits)
    try:
        parallel = _is_parallel(uri.scheme)
    except ImportError as error:
        raise _missing_package(uri) from error
    return FsspecStore(uri, config, limits, parallel=parallel)


def _is_parallel(scheme: str) -> bool:
    """Whether several threads may call a scheme's file system. Loads fsspec and the file system's package."""
    cls = import_module("fsspec").get_filesystem_class(scheme)
    return getattr(cls, "async_impl", False) or scheme in THREAD_SAFE_SCHEMES


def _missing_package(uri: Uri) -> Exception:
    hints = import_module("podferry.storage.fsspec.install_hints")  # loads fsspec: not for a listing of gs://
    found: Exception = hints.missing_package(uri)
    return found


class FsspecStore:
    """A store behind an fsspec file system."""

    def __init__(
        self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS, *, parallel: bool = True
    ) -> None:
        self.uri = uri
        self._config, self._limits = config, limits
        self._options = options_for(uri, config, limits)
        self._reads = FsspecReads(uri, self._options, limits)
        self._directories = FsspecDirectories(self._reads)
        self._writes = FsspecWrites(self._reads, limits)
        self._answered = False
        self.exclusive_create = self._writes.exclusive
        self._threads = ThreadPoolExecutor(limits.worker_threads if parallel else 1, "fsspec")
        self._call_seconds = limits.connect_seconds + limits.stall_seconds + limits.retry_seconds
        copies = FsspecServerCopy(self._call, self._reads, limits.request_seconds)
        self.server_copy: ServerCopy | None = copies if uri.scheme in SERVER_COPY_SCHEMES else None

    @cached_property
    def multipart(self) -> MultipartStore | None:
        """See `Store.multipart`: Google Cloud Storage only."""
        return GcsParts(self._google) if self._google is not None else None

    @cached_property
    def _google(self) -> GcsClient | None:
        """Requests of our own, if they go where those of gcsfs go."""
        address = google_address(self._options) if self.uri.scheme in GOOGLE_SCHEMES else None
        if address is None or self._options.customized:
            return None
        network, options = self._config.network, self._options
        headers = partial(google_token_headers, options, lambda: self._reads.file_system)
        return GcsClient(address, options.location, network, self._limits, headers)

    @cached_property
    def request_builder(self) -> RequestBuilder | None:
        """See `Store.request_builder`."""
        return get_builder_for(self.uri, self._config, self._options, lambda: self._reads.file_system)

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. Except of gs://, the listing is complete before the first entry is yielded."""
        if self._google is not None:
            async for entry in list_objects(self._google, prefix):
                yield entry
            return
        if self.uri.scheme in OBJECT_STORE_SCHEMES:
            found = await self._call(prefix, lambda: self._reads.find(prefix), None)
        else:
            walk = Walk(self.uri, self._read_directory, self._file_entry, self._limits.worker_threads)
            found = await walk.files(prefix)
        for entry in found:
            yield entry

    async def _read_directory(self, name: str) -> Directory:
        return await self._call(name, lambda: self._directories.read(name), self._limits.request_seconds)

    async def _file_entry(self, name: str) -> Entry | None:
        return await self._call(name, lambda: self._reads.file_entry(name), self._call_seconds)

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        if self.uri.scheme not in OBJECT_STORE_SCHEMES:
            return await children_of(self._read_directory, prefix, self._limits.worker_threads)
        work = partial(self._reads.children, prefix)
        return sorted(await self._call(prefix, work, self._limits.request_seconds))

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        checked_name(name)
        return await self._call(name, lambda: self._reads.stat(name), self._call_seconds)

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`. Tag and size are compared after the bytes have arrived."""
        checked_name(name)
        return await self._call(
            name, lambda: self._reads.read(name, start, length, tag, size), self._limits.request_seconds
        )

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        checked_name(name)
        source = BodySource(body, self._limits.part_bytes, self._limits.max_object_bytes)
        work = self._writes.create if mode is WriteMode.CREATE else self._writes.overwrite
        await source.finish(asyncio.ensure_future(self._call(name, lambda: work(name, source), None)))

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`."""
        ordered = [checked_name(name) for name in names]
        delete, seconds = self._writes.delete, self._call_seconds
        await asyncio.gather(*(self._call(name, partial(delete, name), seconds) for name in ordered))

    async def close(self) -> None:
        """Release the threads and the file system with its connections."""
        google = self.__dict__.get("_google")
        if google is not None:
            await google.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        file_system = self._reads.release()
        if file_system is not None:
            import_module("podferry.storage.fsspec.connections").close_file_system(file_system)

    async def _call(self, name: str, work: Callable[[], T], seconds: float | None) -> T:
        loop, location = asyncio.get_running_loop(), self._reads.location
        try:
            with translating(location, name, answered=self._answered):
                async with asyncio.timeout(seconds):
                    found = await loop.run_in_executor(self._threads, self._checked, work, name)
        except Unavailable as error:
            from podferry.storage.errors.vendor_fields import vendor_fields_of  # noqa: PLC0415 - for errors only

            fields = vendor_fields_of(error.__cause__ or error)
            if not self._answered and await requires_tls(location, fields):
                raise store_error("tls port", location, name) from error
            raise
        except (BucketNotFound, InvalidSpec) as error:
            raise await self._not_google(error) or error from error.__cause__
        self._answered = True
        return found

    async def _not_google(self, error: FerryError) -> FerryError | None:
        """The error for a web server at the endpoint, of which gcsfs only shows the status, or None."""
        from podferry.storage.errors.vendor_fields import vendor_fields_of  # noqa: PLC0415 - for errors only

        # A missing bucket is found by gcsfs's own exception, and a refusal by its status.
        statuses = (0, *PAGE_STATUSES) if isinstance(error, BucketNotFound) else PAGE_STATUSES
        status = vendor_fields_of(error.__cause__ or error).status
        if self._google is None or self._answered or status not in statuses:
            return None
        try:
            await self._google.page({"maxResults": "1"}, parse_page)
        except FerryError as found:
            return found if isinstance(error_response(found), NotFromGcs) else None
        return None

    def _checked(self, work: Callable[[], T], name: str) -> T:
        try:
            return work()
        except FileNotFoundError:
            if self._reads.is_bucket_missing():
                raise store_error("bucket", self._reads.location) from None
            raise

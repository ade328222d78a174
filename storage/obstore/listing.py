"""Listings through obstore: of Azure, and of S3 where only obstore finds the credentials.

obstore follows pages as far as they lead. It hides two defects of a server: pages without end, and a page
that says there is more without saying where. Azure says that there is more only by saying where; a listing of
S3 is continued behind its last name until nothing follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol

import obstore

from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.azure.endpoint import AZURE_SCHEMES
from podferry.storage.errors.broken_listing import (
    check_prefix,
    endless_listing,
    incomplete_listing,
    missing_page,
)
from podferry.storage.errors.kinds import error_kind
from podferry.storage.errors.vendor_fields import vendor_fields_of
from podferry.storage.object_names import LAST_CHARACTER
from podferry.storage.obstore.bucket import OBSTORE_ERRORS, ObstoreBucket, next_page
from podferry.storage.retries import pauses
from podferry.storage.timeouts_and_limits import MAX_LISTED

if TYPE_CHECKING:
    from obstore import ListStream, ObjectMeta

MAX_CUTS = 3
"""Of one listing, which is repeated as often."""
PAGE_OBJECTS = 1000
"""Objects that obstore returns at a time."""


class Lister(Protocol):
    """Lists one store. Names are relative to it, and directory markers are left out."""

    def pages(self, prefix: str) -> AsyncIterator[list[Entry]]:
        """All objects below a directory, some at a time.

        Raises:
            Corrupt: There is no end, or no way to it, or what is listed was not asked for.
            FerryError, OBSTORE_ERRORS: The listing failed.
        """

    async def list_directory(self, prefix: str) -> tuple[list[Entry], list[str]]:
        """The objects directly in a directory, and the names of the directories there; raises the same."""


class ObstoreLister:
    """See `Lister`.

    obstore drops the slash that ends a directory marker's key, so an empty object may be a marker:
    directories with empty objects are listed again by delimiter, which shows the markers as directories.
    """

    def __init__(self, bucket: ObstoreBucket, seconds: float) -> None:
        """Lists a bucket; a page arrives within `seconds`."""
        self._bucket, self._seconds = bucket, seconds

    async def pages(self, prefix: str) -> AsyncIterator[list[Entry]]:
        """See `Lister.pages`."""
        key = self._bucket.key(prefix)
        empty: dict[str, list[Entry]] = {}  # by directory
        async for page in CompleteListing(self._bucket, key, self._seconds).pages():
            entries = [self._bucket.entry(item) for item in page if item["path"] != key]
            yield [entry for entry in entries if entry.size]
            for entry in entries:
                if not entry.size:
                    empty.setdefault(entry.name.rpartition("/")[0], []).append(entry)
        for directory, candidates in sorted(empty.items()):
            objects, _ = await self.list_directory(directory)
            names = {entry.name for entry in objects}
            yield [entry for entry in candidates if entry.name in names]

    async def list_directory(self, prefix: str) -> tuple[list[Entry], list[str]]:
        """See `Lister.list_directory`."""
        key = self._bucket.key(prefix)
        async with asyncio.timeout(self._seconds):
            found = await obstore.list_with_delimiter_async(self._bucket.store, key or None)
        directories = [path.rstrip("/") for path in found["common_prefixes"]]
        paths = [item["path"] for item in found["objects"]]
        _check_prefix(self._bucket.uri.root / key, [*paths, *directories])
        await self._check_end(key, [*paths, *(f"{path}/{LAST_CHARACTER}" for path in directories)])
        objects = [self._bucket.entry(item) for item in found["objects"] if item["path"] != key]
        return objects, [path.rpartition("/")[2] for path in directories]

    async def _check_end(self, key: str, paths: list[str]) -> None:
        """Raise `Corrupt` if there may be more behind the last path."""
        if paths and not _says_where_more_is(self._bucket):
            last = max(paths)
            async with asyncio.timeout(self._seconds):
                behind = await next_page(obstore.list(self._bucket.store, key or None, offset=last))
            if any(item["path"] != last for item in behind):
                raise incomplete_listing(self._bucket.uri.root / key, len(paths))


class CompleteListing:
    """One listing of the objects below a key."""

    def __init__(self, bucket: ObstoreBucket, key: str, seconds: float, max_listed: int = MAX_LISTED) -> None:
        """Prepare a listing.

        Args:
            bucket: To list.
            key: The directory, or empty for all.
            seconds: For one page to arrive.
            max_listed: Objects of a listing that may be real.
        """
        self._bucket, self._key, self._uri = bucket, key, bucket.uri.root / key
        self._seconds, self._max_listed = seconds, max_listed
        self._first: set[str] = set()  # of each page
        self._listed, self._last = 0, ""

    async def pages(self) -> AsyncIterator[Sequence[ObjectMeta]]:
        """The objects, at most 1,000 at a time.

        Raises:
            Corrupt: There is no end, or no way to it, or what is listed was not asked for.
            OBSTORE_ERRORS: What obstore raises.
        """
        behind, more = "", True
        while more:
            more = False
            async for page in self._pages(behind):
                if page[0]["path"] < behind:
                    raise incomplete_listing(self._uri, self._listed)
                # A directory marker, which has lost its slash, comes again behind its name.
                found = [item for item in page if item["path"] != behind]
                if found:
                    self._count(found)
                    yield found
                    more = not _says_where_more_is(self._bucket)
            behind = self._last

    async def _pages(self, behind: str) -> AsyncIterator[Sequence[ObjectMeta]]:
        """Pages from one request for each; obstore repeats requests, but not one whose response is cut."""
        taken, last, waits = 0, "", pauses(MAX_CUTS, self._seconds)
        while True:
            try:
                async for page in self._stream(behind, taken, last):
                    taken, last = taken + len(page), page[-1]["path"]
                    yield page
            except OBSTORE_ERRORS as error:
                kind = error_kind(vendor_fields_of(error))
                if self._listed and kind == "missing":
                    raise missing_page(self._uri, self._listed) from error
                pause = None if isinstance(error, TimeoutError) else next(waits, None)
                if kind != "unreachable" or pause is None:
                    raise
                await asyncio.sleep(pause)
            else:
                return

    async def _stream(self, behind: str, taken: int, last: str) -> AsyncIterator[Sequence[ObjectMeta]]:
        """One listing without its first objects: `taken` of them, of which the last one is known."""
        pages = obstore.list(
            self._bucket.store, self._key or None, offset=behind or None, chunk_size=PAGE_OBJECTS
        )
        while page := await self._next(pages):
            skipped, taken = page[:taken], max(0, taken - len(page))
            if skipped and not taken and skipped[-1]["path"] != last:
                raise incomplete_listing(self._uri, self._listed, f"it has changed at {last[:200]!a}")
            if len(page) > len(skipped):
                yield page[len(skipped) :]
        if taken:
            raise incomplete_listing(self._uri, self._listed, f"it has changed before {last[:200]!a}")

    async def _next(self, pages: ListStream[Sequence[ObjectMeta]]) -> Sequence[ObjectMeta]:
        async with asyncio.timeout(self._seconds):  # empty pages without end never arrive
            return await next_page(pages)

    def _count(self, page: Sequence[ObjectMeta]) -> None:
        paths = [item["path"] for item in page]
        _check_prefix(self._uri, paths)
        self._listed += len(page)
        self._last = max(self._last, paths[-1])
        if paths[0] in self._first or self._listed > self._max_listed:
            raise endless_listing(self._uri, self._listed, f"a page begins with {paths[0][:200]!a}")
        self._first.add(paths[0])


def _check_prefix(uri: Uri, paths: list[str]) -> None:
    """Compare paths with what is listed; the marker of that directory itself has lost its slash."""
    if uri.key:
        check_prefix(uri, (path for path in paths if path != uri.key), f"{uri.key}/")


def _says_where_more_is(bucket: ObstoreBucket) -> bool:
    return bucket.uri.scheme in AZURE_SCHEMES

"""Listings of S3 that are complete or an error, by requests of our own.

obstore hides what decides that: whether a page says that there is more, where, and whether the response is a
listing at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

import msgspec

from podferry.contract.errors import Corrupt, FerryError, NotFound
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.broken_listing import (
    check_delimiter,
    check_prefix,
    endless_listing,
    incomplete_listing,
    missing_page,
)
from podferry.storage.http.store_client import StoreRequest, StoreResponse
from podferry.storage.object_names import LAST_CHARACTER, join
from podferry.storage.s3.client import S3Client
from podferry.storage.s3.credentials import credentials_provider
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.s3.listing_page import PAGE_KEYS, ListedPage, parse_page
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import MAX_LISTED, Limits

MAX_EMPTY_PAGES = 1000
"""In a row. A service that filters what it lists sends some; a broken one never ends."""


class ListingClient(Protocol):
    """Sends the requests of a listing; of `S3Client`, what a lister needs."""

    async def fetch(self, request: StoreRequest, parse: Callable[[StoreResponse], ListedPage]) -> ListedPage:
        """The page of a request."""

    async def close(self) -> None:
        """Close the connections."""


class S3Lister:
    """Lists one store. Its connections are closed when no listing is in progress."""

    def __init__(self, client: ListingClient, uri: Uri) -> None:
        self._client, self._uri = client, uri
        self._in_progress = 0

    async def pages(self, prefix: str = "") -> AsyncIterator[list[Entry]]:
        """See `podferry.storage.obstore.listing.Lister`."""
        async for page in self._pages(prefix):
            yield self._objects(page)

    async def list_directory(self, prefix: str) -> tuple[list[Entry], list[str]]:
        """See `podferry.storage.obstore.listing.Lister`."""
        objects: list[Entry] = []
        directories: list[str] = []
        async for page in self._pages(prefix, "/"):
            objects += self._objects(page)
            directories += (key.removesuffix("/").rpartition("/")[2] for key in page.directories)
        return objects, directories

    async def _pages(self, prefix: str, delimiter: str = "") -> AsyncIterator[ListedPage]:
        key = join(self._uri.key, prefix)
        progress = ListingProgress(self._uri.root / key, f"{key}/" if key else "", delimiter)
        self._in_progress += 1
        try:
            more = True
            while more:
                page = await self._page(progress)
                more = progress.add(page)
                yield page
        finally:
            self._in_progress -= 1
            if not self._in_progress:
                await self._client.close()

    async def _page(self, progress: ListingProgress) -> ListedPage:
        try:
            return await self._client.fetch(StoreRequest("GET", "", progress.query()), parse_page)
        except NotFound as error:
            if not progress.begun:
                raise
            raise missing_page(progress.uri, progress.listed) from error

    def _objects(self, page: ListedPage) -> list[Entry]:
        """The objects by their names. An empty one whose key ends with a slash is a directory marker."""
        start = len(self._uri.key) + 1 if self._uri.key else 0
        return [
            Entry(entry.name[start:], entry.size, entry.tag)
            for entry in page.entries
            if entry.size or not entry.name.endswith("/")
        ]


class ListingProgress:
    """How far a listing is: the next request, and whether a page leads on.

    Attributes:
        uri: Of what is listed.
        listed: Keys so far.
    """

    def __init__(self, uri: Uri, prefix: str, delimiter: str, max_listed: int = MAX_LISTED) -> None:
        """Start a listing.

        Args:
            uri: Of what is listed, for messages.
            prefix: All keys begin with it.
            delimiter: Keys are listed up to it, or whole if it is empty.
            max_listed: Keys that may be real.
        """
        self.uri, self._prefix, self._delimiter = uri, prefix, delimiter
        self._max_listed = max_listed
        self._tokens: set[str] = set()
        self._firsts: set[str] = set()  # keys of pages
        self.listed = self._empty = 0
        self._token = self._behind = ""
        self._promised = False  # more, by a page that does not say where

    @property
    def begun(self) -> bool:
        """Whether the next request is for a page behind another."""
        return bool(self._token or self._behind)

    def query(self) -> dict[str, str]:
        """The parameters of the next request. A server that gives no token is listed behind its last key."""
        following = {"continuation-token": self._token, "start-after": self._behind}
        query = {"delimiter": self._delimiter, "prefix": self._prefix, **following}
        given = {name: value for name, value in query.items() if value}
        return {"list-type": "2", "max-keys": str(PAGE_KEYS), "encoding-type": "url", **given}

    def add(self, page: ListedPage) -> bool:
        """Whether there is another page to ask for: also behind one that only hints at it.

        Raises:
            Corrupt: There is no end, or no way to it, or what is listed was not asked for.
        """
        self._check_asked(page)
        where = page.token or page.marker  # which some servers repeat from the request on the last page
        repeats = page.truncated is False and where in {self._token, self._behind}
        more = page.more and not repeats
        if self._promised and not (page.keys or more):
            why = "the page behind them is empty, although there is more"
            raise incomplete_listing(self.uri, self.listed, why)
        self._check_progress(page.keys, page.token if more else "")
        if more:
            self._token = page.token
            self._behind = "" if page.token else self._behind_last(page)
            stated = bool(page.truncated) and not page.token
            self._promised = stated or (self._promised and not page.keys)
        return more

    def _check_asked(self, page: ListedPage) -> None:
        check_prefix(self.uri, page.keys, self._prefix)
        if not self._delimiter:
            check_delimiter(self.uri, page.delimiter, page.directories)
        if self._behind and page.keys and min(page.keys) <= self._behind:
            raise incomplete_listing(self.uri, self.listed)

    def _behind_last(self, page: ListedPage) -> str:
        if not (page.keys or page.marker):
            raise incomplete_listing(self.uri, self.listed)
        if not page.sorted:
            raise incomplete_listing(self.uri, self.listed, "they are not sorted")
        last = max(page.keys, default=page.marker)
        return last + LAST_CHARACTER if last in page.directories else last

    def _check_progress(self, keys: list[str], token: str) -> None:
        self.listed += len(keys)
        self._empty = 0 if keys else self._empty + 1
        if token in self._tokens:
            raise self._endless(f"the token {token[:40]!a} comes again")
        if keys and keys[0] in self._firsts:
            raise self._endless(f"a page begins with {keys[0][:200]!a} again")
        if self._empty > MAX_EMPTY_PAGES:
            raise self._endless(f"{MAX_EMPTY_PAGES:,} empty pages")
        if self.listed > self._max_listed:
            raise self._endless("more than can be real")
        self._tokens.update(filter(None, [token]))
        self._firsts.update(keys[:1])

    def _endless(self, measured: str) -> Corrupt:
        return endless_listing(self.uri, self.listed, measured)


def s3_lister(
    uri: Uri,
    config: StoreConfig,
    limits: Limits,
    explain: Callable[[Exception, str], Awaitable[FerryError]],
) -> S3Lister | None:
    """A lister for the store of a URI, or None if only obstore finds its credentials.

    Args:
        uri: Of the store.
        config: How to reach it.
        limits: Timeouts.
        explain: See `S3Client`.
    """
    access = s3_access(uri, config)
    credentials = credentials_provider(access)
    if credentials is None:
        return None
    bucket = msgspec.structs.replace(access, uri=uri.root)
    return S3Lister(S3Client(bucket, credentials, limits, explain), uri)

"""Listings of Cloud Storage that are complete or an error, by requests of our own.

gcsfs lists as well, but loading it and Google's libraries takes longer than a small dataset.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import msgspec

from podferry.contract.errors import NotFound
from podferry.contract.manifest import Entry
from podferry.storage.errors.broken_listing import (
    check_delimiter,
    check_prefix,
    endless_listing,
    missing_page,
)
from podferry.storage.gcs.client import GcsClient, GcsResponseError
from podferry.storage.http.store_client import StoreResponse
from podferry.storage.object_names import is_temporary, join
from podferry.storage.timeouts_and_limits import MAX_LISTED

KIND = "storage#objects"
"""What a page says of itself. Source: "Objects: list", JSON API reference of Cloud Storage."""

PAGE = {"maxResults": "1000", "fields": "kind,nextPageToken,prefixes,items(name,size,etag)"}
"""What is used of a page. All metadata of 1,000 objects can have 8 MiB and more, since each may have 8 KiB of
its user's; fake-gcs-server 1.56.1 returns all objects in one page unless it is limited. Sources: "Objects:
list" and "Partial response", JSON API reference of Cloud Storage; "Quotas & limits"."""


class UnreadableGcsListing(GcsResponseError):
    """A response with a status of success that is no page of a listing."""

    by_service = False


class ListedObject(msgspec.Struct, frozen=True):
    """An object of a page."""

    name: str
    size: int
    etag: str = ""


class ListedPage(msgspec.Struct, frozen=True):
    """A page of up to 1,000 objects; `nextPageToken` is empty on the last one."""

    kind: str
    items: tuple[ListedObject, ...] = ()
    nextPageToken: str = ""  # noqa: N815 - the service's name
    prefixes: tuple[str, ...] = ()


async def list_objects(client: GcsClient, prefix: str) -> AsyncIterator[Entry]:
    """The files below a prefix, page by page; tags are those of the JSON API.

    Raises:
        BucketNotFound: There is no such bucket.
        Corrupt: The listing has no end, or is not what was asked for.
        Unavailable: It breaks off.
    """
    key = client.key(prefix)
    below = f"{key}/" if key else ""
    uri, listed, tokens = client.location.uri.root / key, 0, {""}
    query = PAGE | ({"prefix": below} if below else {})
    while True:
        try:
            page = await client.page(query, parse_page)
        except NotFound as error:
            if listed:
                raise missing_page(uri, listed) from error
            raise
        check_prefix(uri, (item.name for item in page.items), below)
        check_delimiter(uri, "", page.prefixes)
        for entry in _entries(page, prefix, len(below)):
            yield entry
        listed += len(page.items)
        if not page.nextPageToken:
            return
        if page.nextPageToken in tokens or listed > MAX_LISTED:
            raise endless_listing(uri, listed, f"the token {page.nextPageToken[:40]!a} comes again")
        tokens.add(page.nextPageToken)
        query["pageToken"] = page.nextPageToken


def parse_page(response: StoreResponse) -> ListedPage:
    """The page of a response. The service writes sizes as texts."""
    try:
        page = msgspec.json.decode(response.text, type=ListedPage, strict=False)
    except msgspec.MsgspecError as error:
        raise UnreadableGcsListing(response.status) from error
    if page.kind != KIND:
        raise UnreadableGcsListing(response.status)
    return page


def _entries(page: ListedPage, prefix: str, start: int) -> Iterator[Entry]:
    """An empty object whose key ends with a slash is a directory marker."""
    for item in page.items:
        name = item.name[start:]
        marker = name.endswith("/") and not item.size
        if name and not marker and not is_temporary(name):
            yield Entry(join(prefix, name), item.size, item.etag)

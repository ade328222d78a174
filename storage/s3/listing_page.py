"""One page of a listing: "ListObjectsV2", Amazon S3 API reference."""

from __future__ import annotations

from urllib.parse import unquote_plus
from xml.etree import ElementTree

import msgspec

from podferry.contract.manifest import Entry
from podferry.storage.http.foreign_response import excerpt
from podferry.storage.http.store_client import StoreResponse
from podferry.storage.s3.response import NotFromS3, S3ResponseError

ROOT = "<ListBucketResult"
PAGE_KEYS = 1000
"""Asked for, and the most that Amazon S3 lists on a page."""
BOOLEANS = {"true": True, "1": True, "false": False, "0": False, "": None}
"""Of XML Schema, and an element that says nothing. Some servers write capital letters."""


class UnreadableListing(S3ResponseError):
    """A listing that is cut, or whose values make no sense."""

    def __init__(self, response: StoreResponse, problem: str) -> None:
        super().__init__(response)
        self.status, self.detail = response.status, f"{excerpt(response)}: {problem}"


class ListedPage(msgspec.Struct, frozen=True):
    """Objects and directories by their keys.

    Attributes:
        entries: The objects.
        directories: Common prefixes, each with the slash that ends it.
        truncated: Whether there is more, or None if the server does not say.
        token: Where it continues, or empty if the server does not say.
        marker: The same as a key, which the first version of the request has.
        delimiter: The one that the server has used, if it says so.
        max_keys: That the server would list on a page.
    """

    entries: list[Entry]
    directories: list[str]
    truncated: bool | None
    token: str
    marker: str = ""
    delimiter: str = ""
    max_keys: int = PAGE_KEYS

    @property
    def keys(self) -> list[str]:
        """All of them."""
        return [*(entry.name for entry in self.entries), *self.directories]

    @property
    def more(self) -> bool:
        """Whether there may be more: it says so, or where, or is full and says nothing."""
        full = self.truncated is None and len(self.entries) + len(self.directories) >= max(1, self.max_keys)
        return bool(self.truncated or self.token or self.marker) or full

    @property
    def sorted(self) -> bool:
        """Whether the names are."""
        names = [entry.name for entry in self.entries]
        return names == sorted(names) and self.directories == sorted(self.directories)


def parse_page(response: StoreResponse) -> ListedPage:
    """The page that a response has.

    Raises:
        NotFromS3: It is no listing.
        UnreadableListing: It is none that can be read.
    """
    if ROOT not in response.text:
        raise NotFromS3(response)
    if response.status != 200:
        raise UnreadableListing(response, "the status of a listing is 200")
    try:
        root = ElementTree.fromstring(response.text)  # noqa: S314 - expat bounds what entities become
        return _page(root)
    except (ElementTree.ParseError, ValueError) as error:
        raise UnreadableListing(response, str(error)) from error


def _page(root: ElementTree.Element) -> ListedPage:
    start, end, _ = root.tag.rpartition("}")
    namespace = start + end
    encoded = _text(root, f"{namespace}EncodingType") == "url"
    marker = _text(root, f"{namespace}NextMarker")
    prefixes = root.iterfind(f"{namespace}CommonPrefixes/{namespace}Prefix")
    page = ListedPage(
        [_entry(item, namespace, encoded) for item in root.iterfind(f"{namespace}Contents")],
        [_key(prefix.text, encoded) for prefix in prefixes],
        _truncated(root, namespace),
        _text(root, f"{namespace}NextContinuationToken"),
        _key(marker, encoded) if marker else "",
        _text(root, f"{namespace}Delimiter"),
        min(PAGE_KEYS, _number(root, f"{namespace}MaxKeys", PAGE_KEYS)),
    )
    listed, stated = len(page.keys), _number(root, f"{namespace}KeyCount", 0)
    if stated > listed:
        raise ValueError(f"KeyCount is {stated:,}, and {listed:,} keys are listed")
    return page


def _truncated(root: ElementTree.Element, namespace: str) -> bool | None:
    stated = _text(root, f"{namespace}IsTruncated").strip()
    if stated.lower() not in BOOLEANS:
        raise ValueError(f"IsTruncated is {stated[:40]!a}")
    return BOOLEANS[stated.lower()]


def _number(root: ElementTree.Element, tag: str, default: int) -> int:
    """The number of an element, or the default without one that can be read."""
    text = _text(root, tag).strip()
    return int(text) if text.isascii() and text.isdecimal() else default


def _text(root: ElementTree.Element, tag: str) -> str:
    """The text of an element that comes once at most; empty if it has none."""
    found = [item.text or "" for item in root.iterfind(tag)]
    if len(found) > 1:
        shown = ", ".join(f"{text[:40]!a}" for text in found[:3])
        raise ValueError(f"{tag.rpartition('}')[2]} comes {len(found)} times: {shown}")
    return found[0] if found and found[0].strip() else ""


def _entry(item: ElementTree.Element, namespace: str, encoded: bool) -> Entry:
    keys = item.findall(f"{namespace}Key")
    if len(keys) != 1:
        raise ValueError(f"an entry has {len(keys)} keys")
    key = _key(keys[0].text, encoded)
    size = (item.findtext(f"{namespace}Size") or "").strip()
    if not (size.isascii() and size.isdecimal()):
        raise ValueError(f"the size of {key[:200]!a} is {size[:40]!a}")
    tag = item.findtext(f"{namespace}ETag") or ""
    return Entry(
        key, int(size), f'"{tag}"' if tag.isalnum() else tag
    )  # some servers omit the quotation marks


def _key(text: str | None, encoded: bool) -> str:
    if not text:
        raise ValueError("an entry has no key")
    return unquote_plus(text) if encoded and ("%" in text or "+" in text) else text

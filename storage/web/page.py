"""A page of a web server: complete, decoded, and the one that was requested, or an error."""

from __future__ import annotations

import codecs
import errno
import re
from typing import NamedTuple
from urllib.parse import urljoin

from podferry.contract.errors import FerryError
from podferry.contract.hidden_secrets import hide_query
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.storage.errors.translate import StoreLocation, store_error
from podferry.storage.http.page_detection import HTML_TYPES, is_markup
from podferry.storage.web.address import is_directory_address

MAX_PAGE_BYTES = 256 << 20
"""Of one page: about two million files. A page without end must not fill the memory."""
CHUNK_BYTES = 1 << 16
"""Of a page that are read at a time."""
PAGE_STATUSES = (200, 203)
"""Others below 400 have no page, such as 204, or another one: some servers list similar names with a 300."""
JSON_TYPE = "application/json"
PERMANENT_REDIRECTS = (301, 308)
"""RFC 9110, section 15.4: all others may change."""
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
DECLARED_CHARSET = lazy_pattern(rb"(?:charset|encoding)\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
DECLARATION_BYTES = 1024
"""Where a page may declare its character set. Source: HTML, section 4.2.5.4."""
CHARSET = lazy_pattern(r";\s*charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)
"""Of a Content-Type."""
NEXT_LINK = lazy_pattern(r"<([^<>]*)>[^<>]*;\s*rel\s*=\s*(?:\"[^\"<>]*\bnext\b|next\b)", re.IGNORECASE)
"""Of a `Link` field. Source: RFC 8288, section 3."""


class WebPage(NamedTuple):
    """A page of HTML.

    Attributes:
        url: What was requested.
        address: Its URL, after redirections.
        statuses: HTTP statuses, those of redirections first.
        text: Its content.
        next_page: The address of the next page by its header (`Link`, RFC 8288), or empty.
        is_json: Whether it is JSON, as nginx lists a directory on request.
    """

    url: str
    address: str
    statuses: tuple[int, ...]
    text: str
    next_page: str = ""
    is_json: bool = False


class PageHead(NamedTuple):
    """The response to the request for a page, without its body.

    Attributes:
        url: What was requested.
        address: The URL that has responded, after redirections.
        statuses: HTTP statuses, those of redirections first.
        content_type: The field, or empty.
        link: The fields of that name, or empty.
        length: Of the body as it is sent, or None.
        is_delimited: Whether the response states where it ends, by its length or in chunks.
    """

    url: str
    address: str
    statuses: tuple[int, ...]
    content_type: str
    link: str
    length: int | None
    is_delimited: bool

    @property
    def kind(self) -> str:
        """The type of the page, in lower case, or empty."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def is_directory(self) -> bool:
        """Whether the address is that of a directory."""
        return is_directory_address(self.address)

    @property
    def is_json(self) -> bool:
        """Whether it is a directory's JSON; at the address of a file it would be the file."""
        return self.kind == JSON_TYPE and self.is_directory


class PageReader:
    """Takes a page as it arrives."""

    def __init__(self, location: StoreLocation, name: str, head: PageHead, *, sniff: bool = False) -> None:
        """Check the head.

        Args:
            location: For messages.
            name: What the page belongs to, relative to the store, for messages.
            head: Of the response.
            sniff: Whether to look if what is declared as HTML is HTML.

        Raises:
            NotADirectoryError: It is not HTML.
            FerryError: There is no page, or it is no index.
        """
        self._location, self._name, self._head = location, name, head
        self._sniff = sniff or not head.kind
        self._body = bytearray()
        status = head.statuses[-1]
        if status not in PAGE_STATUSES:
            raise store_error("no page", location, name, f"HTTP {status}")
        if head.kind and head.kind not in HTML_TYPES and not head.is_json:
            if head.is_directory:  # no file's address
                raise store_error("no html", location, name, f"HTTP {status}, {head.kind}")
            raise NotADirectoryError(errno.ENOTDIR, f"no index page, but {head.kind}")

    def feed(self, data: bytes) -> None:
        """Take some bytes.

        Raises:
            NotADirectoryError: It is not HTML.
            Corrupt: It has no end.
        """
        self._body += data
        if self._sniff and not is_markup(self._body):
            raise NotADirectoryError(errno.ENOTDIR, "no index page, but without markup")
        if len(self._body) > MAX_PAGE_BYTES:
            raise store_error("endless", self._location, self._name, f"over {MAX_PAGE_BYTES >> 20} MiB")

    def cut(self) -> FerryError:
        """The error for a body that ends too early."""
        of = "" if self._head.length is None else f"of {self._head.length} "
        ends = f"the body ends after {len(self._body)} {of}bytes"
        return store_error("cut", self._location, self._name, ends)

    def page(self) -> WebPage:
        """The page; its body is complete.

        Raises:
            Unavailable: It is empty, or was cut.
        """
        head, charset = self._head, CHARSET.search(self._head.content_type)
        text = decoded(bytes(self._body), charset[1] if charset else "")
        link = NEXT_LINK.search(head.link)
        next_page = urljoin(head.address, link[1]) if link else ""
        page = WebPage(head.url, head.address, head.statuses, text, next_page, head.is_json)
        if not text.strip():
            raise page_error("no page", self._location, self._name, page, "its body is empty")
        if not head.is_delimited and _ends_early(text):
            detail = "the page has no </html>, and its length is unknown"
            raise page_error("cut", self._location, self._name, page, detail)
        return page


def page_error(kind: str, location: StoreLocation, name: str, page: WebPage, detail: str = "") -> FerryError:
    """The error for a page that is not what it should be."""
    status = f"HTTP {page.statuses[0]}"
    moved = f"{status}, redirected to {hide_query(page.address)}" if len(page.statuses) > 1 else status
    return store_error(kind, location, name, "; ".join(filter(None, (moved, detail))))


def redirected(location: StoreLocation, name: str, page: WebPage) -> FerryError:
    """The error for a redirection to another page."""
    permanent = all(status in PERMANENT_REDIRECTS for status in page.statuses[:-1])
    return page_error("moved" if permanent else "redirected", location, name, page)


def _ends_early(text: str) -> bool:
    """Whether a page without a stated length lacks its end: nothing else shows that it was cut."""
    lower = text.lower()
    return "<html" in lower and "</html" not in lower


def decoded(data: bytes, charset: str) -> str:
    """The text of a page.

    Args:
        data: The page.
        charset: From its header, which a byte order mark overrides; empty if it has none.
    """
    mark = next((mark for mark in BYTE_ORDER_MARKS if data.startswith(mark)), b"")
    declared = DECLARED_CHARSET.search(data, 0, DECLARATION_BYTES)
    found = BYTE_ORDER_MARKS.get(mark) or charset or (declared[1].decode() if declared else "")
    try:
        return data[len(mark) :].decode(found or "utf-8", errors="replace")
    except (LookupError, UnicodeError):  # no character set; links are nearly always in ASCII
        return data.decode(errors="replace")

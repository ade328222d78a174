"""Gets a page of a web server: complete, decoded, and the one that was requested, or an error."""

from __future__ import annotations

import codecs
import errno
import re
from typing import Any, NamedTuple

import aiohttp
import fsspec.asyn

from podferry.contract.errors import FerryError
from podferry.storage.errors.translate import StoreLocation, store_error
from podferry.storage.http.page_detection import HTML_TYPES, is_markup

MAX_PAGE_BYTES = 256 << 20
"""Of one page: about two million files. A page without end must not fill the memory."""
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
DECLARED_CHARSET = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
DECLARATION_BYTES = 1024
"""Where a page may declare its character set. Source: HTML, section 4.2.5.4."""


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


class WebSite(NamedTuple):
    """A web server.

    Attributes:
        file_system: fsspec's, for HTTP.
        location: For messages.
    """

    file_system: Any
    location: StoreLocation

    def page(self, name: str, url: str, *, sniff: bool = False) -> WebPage:
        """The page at a URL, which is that of `name`. Blocks.

        Args:
            name: Relative to the store, for messages.
            url: Without encoding, or with it.
            sniff: Whether to look if what is declared as HTML is HTML.

        Raises:
            FileNotFoundError: There is no such page.
            NotADirectoryError: It is not HTML.
            FerryError: It is empty or not complete, or the server redirects without end.
            aiohttp.ClientError, OSError: The server does not respond as it should.
        """
        found: WebPage
        try:
            found = fsspec.asyn.sync(self.file_system.loop, self._get, name, url, sniff)
        except aiohttp.TooManyRedirects as error:
            raise self._redirected(name, f"{len(error.history)} times") from error
        except aiohttp.RedirectClientError as error:
            raise self._redirected(name, f"to {error}") from error
        return found

    def size(self, url: str) -> int | None:
        """Size of the file at a URL by its GET response, or None if that does not state it. Blocks."""
        found: int | None = fsspec.asyn.sync(self.file_system.loop, self._size, url)
        return found

    def error(self, kind: str, name: str, page: WebPage, detail: str = "") -> FerryError:
        """The error for a page that is not what it should be."""
        status = f"HTTP {page.statuses[0]}"
        moved = f"{status}, redirected to {page.address}" if len(page.statuses) > 1 else status
        return store_error(kind, self.location, name, "; ".join(filter(None, (moved, detail))))

    def redirected(self, name: str, page: WebPage) -> FerryError:
        """The error for a redirection to another page."""
        permanent = all(status in PERMANENT_REDIRECTS for status in page.statuses[:-1])
        return self.error("moved" if permanent else "redirected", name, page)

    def _redirected(self, name: str, where: str) -> FerryError:
        return store_error("redirected", self.location, name, f"redirected {where}")

    async def _size(self, url: str) -> int | None:
        session, given = await self.file_system.set_session(), self.file_system.kwargs
        kwargs = {**given, "headers": {**given.get("headers", {}), "Accept-Encoding": "identity"}}
        async with session.get(self.file_system.encode_url(url), **kwargs) as response:
            response.raise_for_status()
            size: int | None = response.content_length
            return 0 if size is None and not await response.content.read(1) else size

    async def _get(self, name: str, url: str, sniff: bool) -> WebPage:
        session = await self.file_system.set_session()
        async with session.get(self.file_system.encode_url(url), **self.file_system.kwargs) as response:
            if response.status == 404:
                raise FileNotFoundError(errno.ENOENT, "HTTP 404", url)
            response.raise_for_status()
            if response.status not in PAGE_STATUSES:
                raise store_error("no page", self.location, name, f"HTTP {response.status}")
            data = await self._body(name, response, sniff)
            statuses = tuple(each.status for each in (*response.history, response))
            text = decoded(data, response.charset or "")
            next_page = str(response.links.get("next", {}).get("url", ""))
            page = WebPage(url, str(response.url), statuses, text, next_page, _is_json(response))
        if not page.text.strip():
            raise self.error("no page", name, page, "its body is empty")
        if _ends_early(page.text, response):
            raise self.error("cut", name, page, "the page has no </html>, and its length is unknown")
        return page

    async def _body(self, name: str, response: aiohttp.ClientResponse, sniff: bool) -> bytes:
        declared = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if declared and declared not in HTML_TYPES and not _is_json(response):
            if response.url.path.endswith("/"):  # no file's address
                raise store_error("no html", self.location, name, f"HTTP {response.status}, {declared}")
            raise NotADirectoryError(errno.ENOTDIR, f"no index page, but {declared}")
        body = bytearray()
        try:
            async for data in response.content.iter_chunked(1 << 16):
                body += data
                if (sniff or not declared) and not is_markup(body):
                    raise NotADirectoryError(errno.ENOTDIR, "no index page, but without markup")
                if len(body) > MAX_PAGE_BYTES:
                    raise store_error("endless", self.location, name, f"over {MAX_PAGE_BYTES >> 20} MiB")
        except aiohttp.ClientPayloadError as error:
            ends = f"the body ends after {len(body)} {_of(response)}bytes"
            raise store_error("cut", self.location, name, ends) from error
        return bytes(body)


def _is_json(response: aiohttp.ClientResponse) -> bool:
    """Whether a directory's response is JSON; at the address of a file it would be the file."""
    return response.content_type == JSON_TYPE and response.url.path.endswith("/")


def _of(response: aiohttp.ClientResponse) -> str:
    known = response.content_length is not None and "Content-Encoding" not in response.headers
    return f"of {response.content_length} " if known else ""


def _ends_early(text: str, response: aiohttp.ClientResponse) -> bool:
    """Whether a page without a stated length lacks its end: nothing else shows that it was cut."""
    headers = response.headers
    if "Content-Length" in headers or "chunked" in headers.get("Transfer-Encoding", "").lower():
        return False
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

"""Reads a file of a web server, and checks that the response is what was requested.

Servers, caches and proxies that do not support ranges respond with other bytes, and with a page if they
refuse or fail. Sources: RFC 9110, sections 14.4 and 15.3.7.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from podferry.contract.errors import FerryError
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.storage.errors.translate import store_error, too_short
from podferry.storage.http.page_detection import PAGE_SUFFIXES, begins_as_page, is_html, is_markup
from podferry.storage.web.directory import web_file_info
from podferry.storage.web.response import COMPLETE, WebResponse
from podferry.storage.web.site import WebSite

PARTIAL = 206
CONTENT_RANGE = lazy_pattern(r"bytes (\d+)-(\d+)/(\d+|\*)", re.IGNORECASE)


class WebFile(NamedTuple):
    """A file of a web server.

    Attributes:
        site: The server.
        name: Of the file, relative to the store.
        url: Of the file, encoded.
    """

    site: WebSite
    name: str
    url: str

    async def read(self, start: int, length: int | None, size: int | None) -> bytes:
        """`length` bytes from `start`, or the complete file if `length` is None.

        Args:
            start: First byte.
            length: At least one byte.
            size: Of the file as it was listed, bytes; None if it is not known.

        Raises:
            FileNotFoundError: There is no such file.
            Changed: The response states another size than the listed one.
            Corrupt: It is not the requested range, or the file ends before it.
            Unavailable: It is a web page.
            What the site raises.
        """
        response = await self.site.general.get(self.name, self.url, start, length)
        if response.status == PARTIAL and length is not None:
            self._check_range(response, start, length, size)
        elif response.status not in COMPLETE:
            raise self._refused(response, start, length)
        await self._check_page(response, start if response.status == PARTIAL else 0)
        if length is None or response.status == PARTIAL:
            return response.body
        return await self._part_of_all(response, start, length, size)

    def _check_range(self, response: WebResponse, start: int, length: int, size: int | None) -> None:
        """Check a response with a part of the file."""
        found = CONTENT_RANGE.fullmatch(response.content_range.strip())
        if found is None:
            raise self._refused(response, start, length)
        first, last, total = int(found[1]), int(found[2]), found[3]
        if size is not None and total not in {"*", str(size)}:
            detail = f"{response.content_range}; {size} bytes were listed"
            raise store_error("changed", self.site.location, self.name, detail)
        if first != start or last >= start + length or len(response.body) != last - first + 1:
            raise self._refused(response, start, length)
        if last != start + length - 1:
            if total != str(last + 1):
                raise self._refused(response, start, length)
            raise too_short(self.site.location, self.name, start, length, f"{total} bytes")

    async def _part_of_all(self, response: WebResponse, start: int, length: int, size: int | None) -> bytes:
        """A range of a response with the complete file, which a server without ranges sends."""
        if size is None:
            size = (await web_file_info(self.site, self.name, self.url)).size
        if size is not None and len(response.body) != size:
            raise self._refused(response, start, length, f" of {size}")
        if start + length > len(response.body):
            found = f"{len(response.body)} bytes"
            raise too_short(self.site.location, self.name, start, length, found)
        return response.body[start : start + length]

    async def _check_page(self, response: WebResponse, start: int) -> None:
        """Refuse a page in the place of the file; a file that is only declared as one is a file."""
        if PurePosixPath(self.name).suffix.lower() in PAGE_SUFFIXES:
            return
        if is_html(response.kind):
            is_page = not await self._is_declared_html() if start else is_markup(response.body)
        else:
            is_page = start == 0 and begins_as_page(self.name, response.body)
        if is_page:
            raise store_error("page", self.site.location, self.name, str(response))

    async def _is_declared_html(self) -> bool:
        """Whether the server declares the file itself as a page; raises if it is one."""
        return is_html((await web_file_info(self.site, self.name, self.url)).kind)

    def _refused(self, response: WebResponse, start: int, length: int | None, total: str = "") -> FerryError:
        asked = "the complete file" if length is None else f"bytes {start}-{start + length - 1}{total}"
        detail = f"requested {asked}; received {response}"
        return store_error("other range", self.site.location, self.name, detail)

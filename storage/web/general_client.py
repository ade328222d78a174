"""What plain requests cannot read: through proxies, redirected to other servers, in encodings; by aiohttp.

It is imported when such a response has come: that takes longer than most listings.
"""

from __future__ import annotations

import errno
from contextlib import suppress

import aiohttp

from podferry.contract.errors import FerryError
from podferry.contract.hidden_secrets import hide_query
from podferry.storage.errors.translate import StoreLocation, store_error
from podferry.storage.http.last_modified import tag_of
from podferry.storage.http.session import WebSession
from podferry.storage.web.page import CHUNK_BYTES, PageHead, PageReader, WebPage
from podferry.storage.web.response import COMPLETE, UNENCODED, FileInfo, WebResponse

NOT_FOUND = 404
TAG_FIELDS = ("ETag", "Last-Modified", "Date")


class GeneralClient:
    """Requests to a web server, with redirections to any other.

    All calls may raise `aiohttp.ClientError` and `OSError`: the server does not respond as it should.
    """

    def __init__(self, session: WebSession, location: StoreLocation) -> None:
        self._session, self._location = session, location

    async def page(self, name: str, url: str, *, sniff: bool) -> WebPage:
        """See `WebSite.page`."""
        try:
            return await self._page(name, url, sniff)
        except aiohttp.TooManyRedirects as error:
            raise self._redirected(name, f"{len(error.history)} times") from error
        except aiohttp.RedirectClientError as error:
            raise self._redirected(name, f"to {hide_query(str(error))}") from error

    async def _page(self, name: str, url: str, sniff: bool) -> WebPage:
        async with self._session.request("GET", url, redirects=True) as response:
            if response.status == NOT_FOUND:
                raise FileNotFoundError(errno.ENOENT, "HTTP 404", url)
            response.raise_for_status()
            reader = PageReader(self._location, name, _head(url, response), sniff=sniff)
            try:
                async for data in response.content.iter_chunked(CHUNK_BYTES):
                    reader.feed(data)
            except aiohttp.ClientPayloadError as error:
                raise reader.cut() from error
            return reader.page()

    async def info(self, url: str) -> FileInfo:
        """What the server says about a file."""
        with suppress(aiohttp.ClientError, OSError):  # some servers refuse HEAD
            found = await self._info("HEAD", url)
            if found.size and found.status in COMPLETE:
                return found
        # Some say in the response to HEAD that the size is zero, whatever it is.
        return await self._info("GET", url)

    async def _info(self, method: str, url: str) -> FileInfo:
        async with self._session.request(method, url, redirects=True) as response:
            response.raise_for_status()
            size = response.content_length if _coding(response) in UNENCODED else None
            if size is None and method == "GET" and not await response.content.read(1):
                size = 0
            fields = response.headers
            tag = tag_of(*(fields.get(field, "") for field in TAG_FIELDS))
            return FileInfo(size, tag, fields.get("Content-Type", ""), str(response.url), response.status)

    async def get(self, name: str, url: str, start: int, length: int | None) -> WebResponse:
        """The response to a request for a range, or for the complete file if `length` is None.

        Raises:
            FileNotFoundError: There is no such file.
            Corrupt: It is encoded.
        """
        ranged = {} if length is None else {"Range": f"bytes={start}-{start + length - 1}"}
        async with self._session.request("GET", url, ranged, redirects=True) as response:
            if response.status == NOT_FOUND:
                raise FileNotFoundError(errno.ENOENT, "HTTP 404", url)
            response.raise_for_status()
            fields, body = response.headers, await response.read()
        coding = _coding(response)
        if coding not in UNENCODED:  # decoded bytes are not those of the file, nor is their number
            detail = f"requested the bytes as they are stored; received Content-Encoding {coding[:40]}"
            raise store_error("other range", self._location, name, detail)
        kind, content_range = fields.get("Content-Type", ""), fields.get("Content-Range", "")
        return WebResponse(response.status, kind, content_range, body)

    def _redirected(self, name: str, where: str) -> FerryError:
        return store_error("redirected", self._location, name, f"redirected {where}")

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


def _coding(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("Content-Encoding", "identity").strip().lower()


def _head(url: str, response: aiohttp.ClientResponse) -> PageHead:
    fields = response.headers
    return PageHead(
        url,
        str(response.url),
        tuple(each.status for each in (*response.history, response)),
        fields.get("Content-Type", ""),
        ", ".join(fields.getall("Link", [])),
        response.content_length if _coding(response) in UNENCODED else None,
        "Content-Length" in fields or "chunked" in fields.get("Transfer-Encoding", "").lower(),
    )

"""Gets pages from one server without a general client, which takes longer to import than most listings take.

Only plain responses count, and redirections within the server; whatever else comes is left to the general
client, which asks again.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple
from urllib.parse import urljoin

from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.http.blocking_get import BlockingGets
from podferry.storage.http.blocking_response import BlockingResponse, CutBody
from podferry.storage.network.settings import Network
from podferry.storage.request_builder import is_printable_ascii
from podferry.storage.timeouts_and_limits import Limits
from podferry.storage.web.page import CHUNK_BYTES, PageHead, PageReader, WebPage
from podferry.storage.web.response import UNENCODED

REDIRECTS = (301, 302, 303, 307, 308)
MAX_REDIRECTS = 10
"""As many as aiohttp follows."""
NOT_FOUND, FIRST_ERROR = 404, 400


class WebStatusError(Exception):
    """An error response, read by `podferry.storage.errors.vendor_fields`.

    Attributes:
        status: Of HTTP.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class _Redirect(NamedTuple):
    """Where a response redirects to, and its status."""

    address: str
    status: int


class PlainPages:
    """Pages of one server that is reached without a proxy."""

    def __init__(
        self,
        location: StoreLocation,
        network: Network,
        limits: Limits,
        headers: RefreshedValue[Mapping[str, str]],
    ) -> None:
        self._location, self._headers, self._limits = location, headers, limits
        self._gets = BlockingGets(location.endpoint, network.ca.pem, limits)

    async def page(self, name: str, url: str) -> WebPage | None:
        """See `WebSite.page`; None if the general client has to ask.

        Raises:
            WebStatusError: The response is an error.
            TimeoutError: There is no response in time.
        """
        await self._headers.refresh()
        fields = {"Accept": "*/*", "Accept-Encoding": "identity", **(self._headers.value or {})}
        address, statuses = url, tuple[int, ...]()
        for _ in range(MAX_REDIRECTS):
            read = partial(self._read, name, url, address, statuses)
            try:
                found = await self._gets.read(address, fields, self._limits.request_seconds, read)
            except (FileNotFoundError, NotADirectoryError, TimeoutError):
                raise
            except OSError:
                return None
            if not isinstance(found, _Redirect):
                return found
            address, statuses = found.address, (*statuses, found.status)
        return None

    def _read(
        self, name: str, url: str, address: str, statuses: tuple[int, ...], response: BlockingResponse
    ) -> WebPage | _Redirect | None:
        """Read a response in a thread: nothing of what is no page."""
        fields, status = response.headers, response.status
        if status in REDIRECTS and "Location" in fields:
            return self._redirect(address, response)
        if fields.get("Content-Encoding", "identity").strip().lower() not in UNENCODED:
            return None
        if status == NOT_FOUND:
            raise FileNotFoundError(errno.ENOENT, "HTTP 404", url)
        if status >= FIRST_ERROR:
            raise WebStatusError(status)
        head = PageHead(
            url,
            address,
            (*statuses, status),
            fields.get("Content-Type", ""),
            ", ".join(fields.all("Link")),
            response.length,
            response.length is not None or response.chunked,
        )
        reader = PageReader(self._location, name, head)
        try:
            while data := response.read_some(CHUNK_BYTES):
                reader.feed(data)
        except (CutBody, ConnectionResetError) as error:
            raise reader.cut() from error
        return reader.page()

    def _redirect(self, address: str, response: BlockingResponse) -> _Redirect | None:
        """A redirection within the server; None for others, and for one that sets a cookie."""
        target = urljoin(address, response.headers["Location"]).partition("#")[0]
        if "Set-Cookie" in response.headers or not is_printable_ascii(target) or " " in target:
            return None
        if not target.startswith(f"{self._location.endpoint}/"):
            return None
        response.read(CHUNK_BYTES)
        return _Redirect(target, response.status)

    async def close(self) -> None:
        """Close the connections."""
        await self._gets.close()

"""A session of aiohttp for one store, and reads whose bytes are those that were requested.

For engines that speak HTTP.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from podferry.contract.location_guards import Guards
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.errors.translate import StoreLocation, store_error, too_short
from podferry.storage.http.blocking_response import MAX_LINE_BYTES
from podferry.storage.http.connector import Connector
from podferry.storage.http.on_demand_session import OnDemandSession
from podferry.storage.http.origin_headers import OriginHeaders
from podferry.storage.http.sent_once import sent_once
from podferry.storage.network.settings import Network
from podferry.storage.network.tls import tls_context
from podferry.storage.timeouts_and_limits import Limits

CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)", re.IGNORECASE)
COMPLETE, PARTIAL, PAST_THE_END = 200, 206, 416
NO_HEADERS: Mapping[str, str] = {}


class WebSession:
    """Requests to one server, with its credentials; it is opened at the first request, on that loop."""

    def __init__(
        self,
        url: str,
        network: Network,
        limits: Limits,
        headers: RefreshedValue[Mapping[str, str]],
        allowed_sources: Guards = (),
    ) -> None:
        """Prepare; `allowed_sources` are for the servers that this one redirects to."""
        self._url, self._network, self._limits = url, network, limits
        self._origin_headers = OriginHeaders(url, headers, allowed_sources)
        self._session = OnDemandSession(self._open)

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] = NO_HEADERS,
        data: Any = None,
        *,
        redirects: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield its response, whatever its status.

        Args:
            method: Of HTTP.
            url: Encoded.
            headers: Further fields.
            data: The body: bytes, or an asynchronous iterator of bytes.
            redirects: Whether to follow redirections; to other servers without credentials.
        """
        async with self._session.opened().request(
            method,
            URL(url, encoded=True),
            headers={"Accept-Encoding": "identity", "User-Agent": "podferry", **headers},
            data=data,
            allow_redirects=redirects,
        ) as response:
            yield response

    def _open(self) -> aiohttp.ClientSession:
        limits, proxy = self._limits, self._network.proxies.proxy_for(self._url)
        return aiohttp.ClientSession(
            connector=Connector(limit=limits.worker_threads, ssl=tls_context(self._network.ca.pem)),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=limits.connect_seconds, sock_read=limits.stall_seconds
            ),
            middlewares=(self._origin_headers, sent_once),
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES,
            proxy=proxy.url if proxy else None,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


class FoundRange(NamedTuple):
    """What a server sent for a range.

    Attributes:
        data: The bytes.
        size: Of the complete file, or None if the response does not say.
        tag: The response's ETag, or empty.
        kind: Its Content-Type.
    """

    data: bytes
    size: int | None
    tag: str
    kind: str


class RangeReader(NamedTuple):
    """Reads ranges of files of a server.

    Attributes:
        session: Connections.
        location: For messages.
        tag_fields: Fields with a file's tag; the first one counts that a response or a redirection has.
    """

    session: WebSession
    location: StoreLocation
    tag_fields: tuple[str, ...] = ("ETag",)

    async def read(self, name: str, url: str, start: int, length: int | None) -> FoundRange:
        """`length` bytes from `start`, or the complete file if `length` is None.

        Raises:
            Corrupt: The response is not the requested range, or the file ends before it.
            aiohttp.ClientError, OSError: The server does not respond as it should.
        """
        ranged = {"Range": f"bytes={start}-{start + length - 1}"} if length is not None else NO_HEADERS
        async with self.session.request("GET", url, ranged, redirects=True) as response:
            stated = response.headers.get("Content-Range", "")
            if response.status == PAST_THE_END and length is not None:
                raise too_short(self.location, name, start, length, stated or f"HTTP {PAST_THE_END}")
            response.raise_for_status()
            body = await response.read()
            found = FoundRange(body, len(body), self._tag(response), response.content_type)
            if response.status == PARTIAL and length is not None:
                return self._part(name, found, stated, start, length)
            encoded = response.headers.get("Content-Encoding", "identity")
            if response.status != COMPLETE or encoded != "identity":
                raise self._refused(name, start, length, f"HTTP {response.status}, {encoded}, {stated}")
        if length is None:
            return found
        if start + length > len(body):  # the server does not support ranges
            raise too_short(self.location, name, start, length, f"{len(body)} bytes")
        return found._replace(data=body[start : start + length])

    def _tag(self, response: aiohttp.ClientResponse) -> str:
        hops = (*response.history, response)
        found = (hop.headers.get(field) for field in self.tag_fields for hop in hops)
        return next(filter(None, found), "")

    def _part(self, name: str, found: FoundRange, stated: str, start: int, length: int) -> FoundRange:
        match = CONTENT_RANGE.fullmatch(stated.strip())
        if match is None:
            raise self._refused(name, start, length, f"Content-Range {stated or 'missing'}")
        first, last, size = int(match[1]), int(match[2]), None if match[3] == "*" else int(match[3])
        if first != start or last >= start + length or len(found.data) != last - first + 1:
            raise self._refused(name, start, length, f"{stated}, {len(found.data)} bytes")
        if last != start + length - 1:
            if size != last + 1:
                raise self._refused(name, start, length, stated)
            raise too_short(self.location, name, start, length, f"{size} bytes")
        return found._replace(size=size)

    def _refused(self, name: str, start: int, length: int | None, received: str) -> Exception:
        asked = "the complete file" if length is None else f"bytes {start}-{start + length - 1}"
        return store_error("other range", self.location, name, f"requested {asked}; received {received}")

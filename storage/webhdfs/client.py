"""Sends requests of WebHDFS: to the active NameNode, and to the DataNode that it redirects to.

Source: "WebHDFS REST API" of Hadoop's documentation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from unicodedata import normalize
from urllib.parse import quote, unquote, urlencode, urlsplit

import aiohttp
import msgspec
from yarl import URL

from podferry.contract.errors import FerryError, TemporaryError
from podferry.contract.location_guards import is_metadata_service
from podferry.storage.errors.translate import StoreLocation, translate
from podferry.storage.hadoop.errors import hadoop_error
from podferry.storage.http.connector import Connector
from podferry.storage.http.on_demand_session import OnDemandSession
from podferry.storage.http.sent_once import sent_once
from podferry.storage.network.settings import Network
from podferry.storage.network.tls import tls_context
from podferry.storage.retries import retry_temporary
from podferry.storage.timeouts_and_limits import Limits
from podferry.storage.webhdfs.responses import MAX_JSON_BYTES, refusal

T = TypeVar("T")
API = "/webhdfs/v1"
CONNECTIONS = 16
"""To one host: what other engines use threads for."""
REDIRECTS = (307, 302)
"""Hadoop's documentation has 307; some gateways send 302."""


class WebHdfsAccess(msgspec.Struct, frozen=True):
    """How to reach a cluster.

    Attributes:
        location: Of the root, for errors.
        bases: URLs of the NameNodes, without a path.
        identity: Parameters of each request: the user or the token.
        network: Trusted certificates and proxies.
        limits: Timeouts and retries.
    """

    location: StoreLocation
    bases: tuple[str, ...]
    identity: Mapping[str, str]
    network: Network
    limits: Limits

    def __repr__(self) -> str:
        return f"WebHdfsAccess({self.location.uri}, {', '.join(self.bases)})"


class WebHdfsClient:
    """Requests about absolute paths. Errors are podferry's own."""

    def __init__(self, access: WebHdfsAccess) -> None:
        self._access = access
        self._active = 0
        self._session = OnDemandSession(self._open)

    async def call(self, method: str, path: str, op: str, **parameters: str) -> dict[str, Any]:
        """The JSON of the NameNode's response, or empty. Failures that may pass are retried."""

        async def send(base: str) -> dict[str, Any]:
            """Send it to one NameNode."""
            url = self._url(base, path, op, parameters)
            async with self.responding(method, url, path) as response:
                return await self._json(response, path)

        return await self._retried(lambda: self._at_active(send))

    async def json_at(self, url: str, path: str) -> dict[str, Any]:
        """The JSON at a URL of `redirection`."""
        async with self.responding("GET", url, path) as response:
            return await self._json(response, path)

    async def redirection(self, method: str, path: str, op: str, **parameters: str) -> str:
        """Where the NameNode redirects a request to, or the URL itself if it serves the data.

        Raises:
            FerryError: It refuses, or redirects to something else than WebHDFS.
        """

        async def send(base: str) -> str:
            """Ask one NameNode."""
            url = self._url(base, path, op, parameters)
            async with self.responding(method, url, path) as response:
                if response.status not in REDIRECTS:
                    return url
                return self._checked(url, response.headers.get("Location", ""), path)

        return await self._retried(lambda: self._at_active(send))

    @asynccontextmanager
    async def responding(
        self, method: str, url: str, path: str, body: AsyncIterator[bytes] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to one request, not retried; one that is not a success or a redirection is raised."""
        name, location = path.strip("/"), self._access.location
        proxy = self._access.network.proxies.proxy_for(url)
        kwargs: dict[str, Any] = {"proxy": proxy.url} if proxy else {}
        if body is not None:
            kwargs |= {"data": body, "headers": {"Content-Type": "application/octet-stream"}}
        try:
            async with self._session.opened().request(
                method, URL(url, encoded=True), allow_redirects=False, **kwargs
            ) as response:
                if response.status >= 400:
                    raise refusal(location, name, response.status, await _limited(response))
                yield response
        except FerryError:
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise translate(error, location, name) from error

    async def _json(self, response: aiohttp.ClientResponse, path: str) -> dict[str, Any]:
        body = await _limited(response)
        try:
            return msgspec.json.decode(body or b"{}", type=dict[str, Any])
        except msgspec.DecodeError as error:
            evidence = f"HTTP {response.status}, {response.content_type}"
            raise hadoop_error("not hdfs", self._access.location, path.strip("/"), evidence) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        limits, tls = self._access.limits, tls_context(self._access.network.ca.pem)
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=limits.connect_seconds, sock_read=limits.stall_seconds
        )
        return aiohttp.ClientSession(
            connector=Connector(limit_per_host=CONNECTIONS, ssl=tls),
            timeout=timeout,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=(sent_once,),
        )

    def _url(self, base: str, path: str, op: str, parameters: Mapping[str, str]) -> str:
        query = urlencode({"op": op, **self._access.identity, **parameters}, quote_via=quote)
        return f"{base}{API}{quote(path)}?{query}"

    async def _at_active(self, send: Callable[[str], Awaitable[T]]) -> T:
        """Ask the NameNode that was active last, then the others."""
        bases, first = self._access.bases, self._active
        for offset in range(len(bases)):
            index = (first + offset) % len(bases)
            try:
                found = await send(bases[index])
            except TemporaryError:
                if offset == len(bases) - 1:
                    raise
            else:
                self._active = index
                return found
        raise AssertionError("there are no addresses")

    async def _retried(self, call: Callable[[], Awaitable[T]]) -> T:
        limits = self._access.limits
        return await retry_temporary(call, limits.retries + 1, limits.retry_seconds)

    def _checked(self, url: str, target: str, path: str) -> str:
        """The target of a redirection, if it is WebHDFS too: a server may not direct requests elsewhere."""
        found, secure = urlsplit(target), url.startswith("https:")
        downgraded = secure and found.scheme != "https"
        expected = found.scheme in {"http", "https"} and found.path.startswith(f"{API}/")
        if not expected or downgraded or is_metadata_service(target):
            evidence = f"redirected to {found.scheme}://{found.netloc}{found.path[:100]}"
            raise hadoop_error("not hdfs", self._access.location, path.strip("/"), evidence)
        # Java's URI.toASCIIString, by which the NameNode writes the path, composes letters and their accents.
        is_same = normalize("NFC", unquote(found.path)) == normalize("NFC", f"{API}{path}")
        return found._replace(path=f"{API}{quote(path)}").geturl() if is_same else target


async def _limited(response: aiohttp.ClientResponse) -> bytes:
    """The body, up to the size of a listing's page."""
    body = bytearray()
    async for data in response.content.iter_any():
        body += data
        if len(body) > MAX_JSON_BYTES:
            raise aiohttp.ClientPayloadError(f"over {MAX_JSON_BYTES} bytes of JSON")
    return bytes(body)

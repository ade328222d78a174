"""Sends the requests that an engine has no call for: signed, with timeouts and retries.

What differs by service, a subclass adds: the signature, and which responses are errors.
"""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from podferry.contract.errors import FerryError
from podferry.storage.errors.translate import StoreLocation, translate
from podferry.storage.http.blocking_get import MAX_RESPONSE_BYTES, BlockingGets, Response
from podferry.storage.http.on_demand_session import OnDemandSession
from podferry.storage.network.settings import Network
from podferry.storage.object_names import join
from podferry.storage.retries import retry_temporary
from podferry.storage.timeouts_and_limits import Limits

Buffer = bytes | memoryview
T = TypeVar("T")
Explain = Callable[[Exception, str], Awaitable[FerryError]]
"""The error for a user, of an exception and the name of an object: its type says whether to ask again."""


class StoreResponse(msgspec.Struct, frozen=True):
    """A response: status, headers by case-insensitive name, and the body as text."""

    status: int
    headers: Mapping[str, str]
    text: str


class StoreResponseError(Exception):
    """An error response, read by `podferry.storage.errors.vendor_fields`.

    Attributes:
        status: Of HTTP; 0 if the error came with a status of success.
        error_code: The vendor's, or empty.
        by_service: Whether the service itself has responded.
    """

    status = 0
    error_code = ""
    by_service = True


class StoreRequest(msgspec.Struct, frozen=True):
    """A request about one object.

    Attributes:
        method: Of HTTP.
        name: The object, relative to the store.
        query: Parameters, not encoded.
        headers: The signature covers all of them.
        body: Sent without a copy.
        signed_body: Whether the signature covers the body too; if not, a checksum in the headers must.
        timeout_seconds: For one attempt; 0 means as configured.
        attempts: At most; 0 means as configured.
    """

    method: str
    name: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: Buffer = b""
    signed_body: bool = True
    timeout_seconds: float = 0
    attempts: int = 0


class StoreClient(ABC):
    """A client of one bucket. It connects at the first request, and again after `close`."""

    def __init__(
        self, url: str, location: StoreLocation, network: Network, limits: Limits, explain: Explain | None
    ) -> None:
        """Prepare a client.

        Args:
            url: Of the bucket; a slash and the key follow.
            location: Of the store, for errors.
            network: Trusted certificates and proxies.
            limits: Timeouts and retries.
            explain: The errors for users; without it, they are translated by themselves alone.
        """
        self.location = location
        self._url = url
        self._prefix = location.uri.key
        self._limits = limits
        self._session = OnDemandSession(lambda: _plain_session().open_session(url, network.ca.pem))
        self._gets = BlockingGets(url, network.ca.pem, limits)
        proxy = network.proxies.proxy_for(url)
        self._proxy = proxy.url if proxy else None
        self._answered = False
        self._explain = explain or self._translated

    @abstractmethod
    def _signed(self, request: StoreRequest, url: str) -> tuple[str, Mapping[str, str]]:
        """The URL and all headers to send. May block: for credentials, and for the hash of a large body."""

    @abstractmethod
    def _encoded_query(self, query: Mapping[str, str]) -> str:
        """A query as it is signed and sent."""

    @abstractmethod
    def _checked(self, response: StoreResponse) -> StoreResponse:
        """The response if it reports success; raises a `StoreResponseError` if not."""

    async def send(self, request: StoreRequest) -> StoreResponse:
        """The response to a request, with retries.

        Raises:
            FerryError: Chained from the `StoreResponseError` if the server responded.
        """
        return await self.fetch(request, lambda response: response)

    async def fetch(self, request: StoreRequest, parse: Callable[[StoreResponse], T]) -> T:
        """What `parse` makes of the response; it may refuse it with an `StoreResponseError`. See `send`."""

        async def once() -> T:
            try:
                found = parse(await self._attempt(request))
            except _failures() as error:
                raise await self._explain(error, request.name) from error
            self._answered = True
            return found

        attempts = request.attempts or self._limits.retries + 1
        return await retry_temporary(once, attempts, self._limits.retry_seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self._gets.close()
        await self._session.close()

    async def _attempt(self, request: StoreRequest) -> StoreResponse:
        url = self._address(request)
        url, headers = await asyncio.to_thread(self._signed, request, url)
        if request.method == "GET" and not request.body and self._proxy is None:
            seconds = request.timeout_seconds or self._limits.request_seconds
            status, found, body = await self._gets.get(url, headers, seconds, MAX_RESPONSE_BYTES)
        else:
            status, found, body = await self._by_session(request, url, headers)
        return self._checked(StoreResponse(status, found, body.decode(errors="replace")))

    async def _by_session(self, request: StoreRequest, url: str, headers: Mapping[str, str]) -> Response:
        session = self._session.opened()
        found: Response = await _plain_session().exchange(
            session, request, url, headers, self._proxy, self._limits
        )
        return found

    async def _translated(self, error: Exception, name: str) -> FerryError:
        self._answered |= isinstance(error, StoreResponseError) and error.by_service
        return translate(error, self.location, name, answered=self._answered)

    def _address(self, request: StoreRequest) -> str:
        query = self._encoded_query(request.query)
        return f"{self._url}/{quote(join(self._prefix, request.name))}{'?' + query if query else ''}"


def _plain_session() -> Any:
    """Loads aiohttp: not for a listing."""
    return import_module("podferry.storage.http.plain_session")


def _failures() -> tuple[type[Exception], ...]:
    """What a request raises; aiohttp's own only if it is loaded, and not while another thread loads it."""
    own = getattr(sys.modules.get("aiohttp"), "ClientError", None)
    return (StoreResponseError, OSError) if own is None else (StoreResponseError, OSError, own)


def error_response(error: FerryError) -> StoreResponseError | None:
    """The response behind an error of `StoreClient.send`, or None if there was none."""
    cause = error.__cause__
    return cause if isinstance(cause, StoreResponseError) else None

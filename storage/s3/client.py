"""Sends the S3 requests that obstore has no call for: signed, with timeouts and retries."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
import stamina
from yarl import URL

from podferry.contract.errors import FerryError, TemporaryError
from podferry.storage.errors.translate import translate
from podferry.storage.http.plain_session import MAX_RESPONSE_BYTES, Buffer, BufferBody, body_of, open_session
from podferry.storage.object_names import join
from podferry.storage.s3.credentials import S3CredentialsProvider
from podferry.storage.s3.endpoint import S3Access
from podferry.storage.s3.response import NotFromS3, S3Response, S3ResponseError, checked
from podferry.storage.s3.sigv4 import UNSIGNED_PAYLOAD, SigV4Signer, canonical_query
from podferry.storage.timeouts_and_limits import Limits

T = TypeVar("T")
Explain = Callable[[Exception, str], Awaitable[FerryError]]
"""The error for a user, of an exception and the name of an object: its type says whether to ask again."""


class S3Request(msgspec.Struct, frozen=True):
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


class S3Client:
    """A client of one bucket. It connects at the first request, and again after `close`."""

    def __init__(
        self,
        access: S3Access,
        credentials: S3CredentialsProvider,
        limits: Limits,
        explain: Explain | None = None,
    ) -> None:
        """Prepare a client; without `explain`, errors are translated by themselves alone."""
        self.location = access.location
        self._url = access.bucket_url
        self._prefix = access.uri.key
        self._region = access.region
        self._credentials = credentials
        self._limits = limits
        self._session: aiohttp.ClientSession | None = None
        proxy = access.network.proxies.proxy_for(self._url)
        self._proxy = proxy.url if proxy else None
        self._answered = False
        self._explain = explain or self._translated
        self._ca = access.network.ca.pem
        self._headers = access.request_headers

    async def send(self, request: S3Request) -> S3Response:
        """The response to a request, with retries.

        Raises:
            FerryError: Chained from the `S3ResponseError` if the server responded.
        """
        return await self.fetch(request, lambda response: response)

    async def fetch(self, request: S3Request, parse: Callable[[S3Response], T]) -> T:
        """What `parse` makes of the response; it may refuse it with an `S3ResponseError`. See `send`."""
        attempts = stamina.retry_context(
            on=TemporaryError,
            attempts=request.attempts or self._limits.retries + 1,
            timeout=self._limits.retry_seconds,
            wait_jitter=0.2,
            wait_max=5.0,
        )
        async for attempt in attempts:
            with attempt:
                try:
                    found = parse(await self._attempt(request))
                except (S3ResponseError, aiohttp.ClientError, OSError) as error:
                    raise await self._explain(error, request.name) from error
                self._answered = True
                return found
        raise AssertionError  # stamina raises the error of the last attempt

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None  # at once: a request meanwhile opens its own
        if session is not None:
            await session.close()

    async def _attempt(self, request: S3Request) -> S3Response:
        url = self._address(request)
        headers = await asyncio.to_thread(self._signed_headers, request, url)
        pending = self._open_session().request(
            request.method,
            URL(url, encoded=True),
            headers=headers,
            data=BufferBody(request.body, self._limits.stall_seconds) if request.body else None,
            allow_redirects=False,
            proxy=self._proxy,
            timeout=self._timeout(request),
        )
        async with pending as response:
            text = (await body_of(response, MAX_RESPONSE_BYTES)).decode(errors="replace")
            return checked(S3Response(response.status, response.headers, text))

    async def _translated(self, error: Exception, name: str) -> FerryError:
        self._answered |= isinstance(error, S3ResponseError) and not isinstance(error, NotFromS3)
        return translate(error, self.location, name, answered=self._answered)

    def _address(self, request: S3Request) -> str:
        query = canonical_query(request.query)
        return f"{self._url}/{quote(join(self._prefix, request.name))}{'?' + query if query else ''}"

    def _signed_headers(self, request: S3Request, url: str) -> Mapping[str, str]:
        """All headers of a request. Blocks: for credentials, and for the hash of a large body."""
        credentials = self._credentials.load()
        sent = {**self._headers, **request.headers}
        if credentials is None:
            return sent
        payload = hashlib.sha256(request.body).hexdigest() if request.signed_body else UNSIGNED_PAYLOAD
        parts = urlsplit(url)
        signer = SigV4Signer(credentials, self._region, parts.netloc)
        return signer.sign(request.method, parts.path, parts.query, sent, payload)

    def _timeout(self, request: S3Request) -> aiohttp.ClientTimeout:
        limits = self._limits
        scale = max(1.0, len(request.body) / limits.part_bytes)  # the limit is for one part of the usual size
        return aiohttp.ClientTimeout(
            total=request.timeout_seconds or limits.request_seconds * scale,
            sock_connect=limits.connect_seconds,
            sock_read=request.timeout_seconds or limits.stall_seconds,
        )

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_session(self._url, self._ca)
        return self._session


def error_response(error: FerryError) -> S3ResponseError | None:
    """The response behind an error of `S3Client.send`, or None if there was none."""
    cause = error.__cause__
    return cause if isinstance(cause, S3ResponseError) else None

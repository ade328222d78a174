"""Requests to S3 that obstore has no call for: signed, bounded in time, repeated, with errors of the tree."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
import stamina
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from yarl import URL

from podferry.contract.errors import FerryError, TemporaryError
from podferry.storage.errors.translate import translate
from podferry.storage.errors.vendor_fields import CODE
from podferry.storage.limits import KIB, Limits
from podferry.storage.s3.credentials import S3CredentialsProvider
from podferry.storage.s3.endpoint import S3Access
from podferry.storage.s3.sigv4 import UNSIGNED_PAYLOAD, SigV4Signer, canonical_query

Buffer = bytes | memoryview
SLICE = 256 * KIB
"""Bytes that are handed to the connection at once: what it cannot send it may copy."""
MAX_TEXT_BYTES = 4 << 20
"""Bytes of an answer that are read: a list of 10,000 parts is far below it."""


class S3Request(msgspec.Struct, frozen=True):
    """What is asked for.

    Attributes:
        method: Of HTTP.
        name: The object, relative to the store.
        query: Behind the question mark.
        headers: Those that the signature covers.
        body: What is sent.
        signed: Whether the signature covers the body, too; else something else must vouch for it.
        seconds: For one try; 0 is what the limits say.
        tries: At most; 0 is what the limits say.
    """

    method: str
    name: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: Buffer = b""
    signed: bool = True
    seconds: float = 0
    tries: int = 0


class S3Response(msgspec.Struct, frozen=True):
    """What came back.

    Attributes:
        headers: By their names, in any case.
        text: The body.
    """

    headers: Mapping[str, str]
    text: str


class S3RequestError(Exception):
    """An answer that is an error; `podferry.storage.errors.vendor_fields` reads both attributes.

    Attributes:
        status: Of HTTP; 0 for an error behind a status of success.
        error_code: The vendor's word.
    """

    def __init__(self, status: int, error_code: str) -> None:
        super().__init__(f"{status} {error_code}")
        self.status = status
        self.error_code = error_code


class S3Client:
    """A client of one bucket; its connections are opened at the first request."""

    def __init__(self, access: S3Access, credentials: S3CredentialsProvider, limits: Limits) -> None:
        self.place = access.place
        self._url = access.bucket_url
        self._prefix = access.uri.key
        self._region = access.region
        self._credentials = credentials
        self._limits = limits
        self._session: aiohttp.ClientSession | None = None
        proxies = getproxies()  # as obstore's client does
        split = urlsplit(self._url)
        bypassed = not split.hostname or proxy_bypass(split.hostname)
        self._proxy = None if bypassed else proxies.get(split.scheme)

    async def send(self, request: S3Request) -> S3Response:
        """The answer to a request, after as many tries as the limits say.

        Raises:
            FerryError: Chained from the `S3RequestError`, where there was an answer.
        """
        attempts = stamina.retry_context(
            on=TemporaryError,
            attempts=request.tries or self._limits.retries + 1,
            timeout=self._limits.retry_seconds,
            wait_jitter=0.2,
            wait_max=5.0,
        )
        async for attempt in attempts:
            with attempt:
                try:
                    return await self._once(request)
                except (S3RequestError, aiohttp.ClientError, OSError) as error:
                    raise translate(error, self.place, request.name) from error
        raise AssertionError  # stamina raises what the last attempt did

    async def close(self) -> None:
        """Give back the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _once(self, request: S3Request) -> S3Response:
        url = self._address(request)
        headers = await asyncio.to_thread(self._signed_headers, request, url)
        sent = self._opened().request(
            request.method,
            URL(url, encoded=True),
            headers=headers,
            data=_Body(request.body, self._limits.stall_seconds) if request.body else None,
            allow_redirects=False,
            proxy=self._proxy,
            timeout=self._timeout(request),
        )
        async with sent as response:
            text = (await response.content.read(MAX_TEXT_BYTES)).decode(errors="replace")
            return _checked(response.status, S3Response(response.headers, text))

    def _address(self, request: S3Request) -> str:
        key = "/".join(part for part in (self._prefix, request.name) if part)
        query = canonical_query(request.query)
        return f"{self._url}/{quote(key, safe='/~')}{'?' + query if query else ''}"

    def _signed_headers(self, request: S3Request, url: str) -> Mapping[str, str]:
        """All headers of a request. Blocks: for credentials, and for the hash of a large body."""
        credentials = self._credentials.load()
        if credentials is None:
            return request.headers
        payload = hashlib.sha256(request.body).hexdigest() if request.signed else UNSIGNED_PAYLOAD
        parts = urlsplit(url)
        signer = SigV4Signer(credentials, self._region, parts.netloc)
        return signer.sign(request.method, parts.path, parts.query, request.headers, payload)

    def _timeout(self, request: S3Request) -> aiohttp.ClientTimeout:
        limits = self._limits
        share = max(1.0, len(request.body) / limits.part_bytes)  # the limit is for one part of usual size
        return aiohttp.ClientTimeout(
            total=request.seconds or limits.request_seconds * share,
            sock_connect=limits.connect_seconds,
            sock_read=request.seconds or limits.stall_seconds,
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # who calls decides how many run at once
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("Accept-Encoding", "Content-Type"),
                headers={"User-Agent": "podferry"},
            )
        return self._session


class _Body(Payload):
    """A buffer that is sent without a copy, in slices, each of which must go out before the store stalls."""

    def __init__(self, data: Buffer, stall_seconds: float) -> None:
        super().__init__(data)
        self._size = len(data)
        self._stall_seconds = stall_seconds

    async def write(self, writer: AbstractStreamWriter) -> None:
        view = memoryview(self._value)
        for start in range(0, len(view), SLICE):
            async with asyncio.timeout(self._stall_seconds):
                await writer.write(view[start : start + SLICE])

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return bytes(self._value).decode(encoding, errors)


def refusal(error: FerryError) -> S3RequestError | None:
    """The answer that an error of `S3Client.send` stands for, None where there was none."""
    cause = error.__cause__
    return cause if isinstance(cause, S3RequestError) else None


def _checked(status: int, answer: S3Response) -> S3Response:
    """An answer that is no error: some errors come behind a status of success."""
    if 200 <= status < 300 and "<Error>" not in answer.text:
        return answer
    code = CODE.search(answer.text)
    raise S3RequestError(0 if status < 300 else status, code[1] if code else "")

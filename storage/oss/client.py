"""Sends requests to OSS: addressed and signed by Alibaba's client, over a session of our own.

Its own session knows neither CA bundles nor bounds, and encodes names twice. Its retries do not end in time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import aiohttp
import msgspec
from alibabacloud_oss_v2 import config as oss_config
from alibabacloud_oss_v2 import credentials as oss_credentials
from alibabacloud_oss_v2 import exceptions as oss_exceptions
from alibabacloud_oss_v2 import retry as oss_retry
from alibabacloud_oss_v2.aio import AsyncClient
from alibabacloud_oss_v2.types import OperationInput
from yarl import URL

from podferry.contract.errors import FerryError
from podferry.storage.errors.translate import store_error, translate
from podferry.storage.http.blocking_get import MAX_RESPONSE_BYTES
from podferry.storage.http.on_demand_session import OnDemandSession
from podferry.storage.http.plain_session import BufferBody, body_of, open_session
from podferry.storage.http.store_client import Buffer
from podferry.storage.object_names import join
from podferry.storage.oss.credentials import OssCredentials
from podferry.storage.oss.endpoint import OssAccess
from podferry.storage.oss.other_region import wrong_endpoint, wrong_region
from podferry.storage.oss.response import NotFromOss, OssResponse, OssResponseError, checked
from podferry.storage.retries import retry_temporary
from podferry.storage.timeouts_and_limits import Limits

T = TypeVar("T")


class OssRequest(msgspec.Struct, frozen=True):
    """A request about one object, or about the bucket.

    Attributes:
        method: Of HTTP.
        name: The object, relative to the store; empty for the bucket.
        query: Parameters, not encoded.
        headers: The signature covers those of OSS.
        body: Sent without a copy.
        document: Whether the body of the response is OSS's own, and bounded.
        timeout_seconds: For a part of the body of the response; 0 means as configured.
    """

    method: str
    name: str = ""
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: Buffer = b""
    document: bool = True
    timeout_seconds: float = 0


class OssClient:
    """A client of one bucket. It connects at the first request, and again after `close`."""

    def __init__(self, access: OssAccess, limits: Limits) -> None:
        self.access, self.location = access, access.location
        self._limits = limits
        self._credentials = OssCredentials(access)
        self._session = OnDemandSession(lambda: open_session(access.endpoint, access.network.ca.pem))
        proxy = access.network.proxies.proxy_for(access.bucket_url)
        self._proxy = proxy.url if proxy else None
        self._answered = False
        self._client: Any = AsyncClient(self._configuration())

    async def send(self, request: OssRequest) -> OssResponse:
        """The response to a request, with retries.

        Raises:
            FerryError: Chained from the `OssResponseError` if the server responded.
        """
        return await self.fetch(request, lambda response: response)

    async def fetch(self, request: OssRequest, parse: Callable[[OssResponse], T]) -> T:
        """What `parse` makes of the response; it may refuse it with a `TemporaryError`. See `send`."""

        async def once() -> T:
            response = await self._attempt(request)
            self._answered = True
            return parse(response)

        return await retry_temporary(once, self._limits.retries + 1, self._limits.retry_seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def _attempt(self, request: OssRequest) -> OssResponse:
        await self._credentials.prepare()
        key = join(self.access.uri.key, request.name) if request.name else None
        operation = OperationInput(
            request.method,
            request.method,
            headers=dict(request.headers),
            parameters=dict(request.query),
            body=request.body or None,
            bucket=self.access.bucket,
            key=key,
        )
        sender = _Sender(self._session.opened(), self._proxy, request, self._limits)
        try:
            await self._client.invoke_operation(operation, http_client=sender)
        except oss_exceptions.OperationError as error:
            cause = error.unwrap()
            raise self._explained(cause, request) from cause
        assert sender.response is not None, "the client has sent the request"  # noqa: S101
        return sender.response

    def _explained(self, error: Exception, request: OssRequest) -> FerryError:
        name = request.name
        if isinstance(error, FerryError):
            return error
        if isinstance(error, oss_exceptions.BucketNameInvalidError):
            return store_error("bucket", self.location, name, "not a name of a bucket")
        if isinstance(error, oss_exceptions.ObjectNameInvalidError):
            return store_error("name", self.location, name, "up to 1,023 bytes are allowed")
        if isinstance(error, OssResponseError):
            self._answered |= not isinstance(error, NotFromOss)
            if error.endpoint:
                return wrong_endpoint(self.location, error.endpoint)
            if error.wrong_region:
                return wrong_region(self.location, self.access.region)
        operation = "listed" if request.method == "GET" and not name else ""
        return translate(error, self.location, name, operation, answered=self._answered)

    def _configuration(self) -> Any:
        found = oss_config.load_default()
        found.endpoint, found.region = self.access.endpoint, self.access.region
        found.use_path_style = self.access.path_style  # it knows no addresses of IPv6
        found.user_agent, found.retryer, found.retry_max_attempts = "podferry", oss_retry.NopRetryer(), 1
        anonymous = oss_credentials.AnonymousCredentialsProvider()
        provider = oss_credentials.CredentialsProviderFunc(self._current_keys)
        found.credentials_provider = anonymous if self._credentials.anonymous else provider
        found.http_client = _NO_SENDER
        return found

    def _current_keys(self) -> Any:
        keys = self._credentials.current
        assert keys is not None, "each attempt prepares them"  # noqa: S101
        return oss_credentials.Credentials(keys.access_key_id, keys.access_key_secret, keys.security_token)


_NO_SENDER = object()
"""Each request has a sender of its own; without one here, Alibaba's client would open its session."""


class _Reply(NamedTuple):
    """What Alibaba's client looks at after a success."""

    status_code: int
    reason: str
    headers: Mapping[str, str]


class _Sender:
    """Sends one signed request for Alibaba's client, and keeps the response."""

    def __init__(
        self, session: aiohttp.ClientSession, proxy: str | None, request: OssRequest, limits: Limits
    ) -> None:
        self._session, self._proxy, self._request, self._limits = session, proxy, request, limits
        self.response: OssResponse | None = None

    async def send(self, signed: Any, **options: object) -> _Reply:
        """See `alibabacloud_oss_v2.types.AsyncHttpClient`."""
        del options
        body = self._request.body
        pending = self._session.request(
            signed.method,
            URL(signed.url, encoded=True),
            headers=dict(signed.headers),
            data=BufferBody(body, self._limits.stall_seconds) if body else None,
            allow_redirects=False,
            proxy=self._proxy,
            timeout=self._timeout(),
        )
        async with pending as response:
            size = response.content_length or 0
            content = not self._request.document and response.status < 300
            found = await body_of(response, size if content else MAX_RESPONSE_BYTES)
            answer = OssResponse(response.status, response.headers, found)
        self.response = checked(answer, document=not content)
        return _Reply(answer.status, "", answer.headers)

    def _timeout(self) -> aiohttp.ClientTimeout:
        limits, seconds = self._limits, self._request.timeout_seconds
        scale = max(1.0, len(self._request.body) / limits.part_bytes)  # the limit is for one part
        return aiohttp.ClientTimeout(
            total=seconds or limits.request_seconds * scale,
            sock_connect=limits.connect_seconds,
            sock_read=seconds or limits.stall_seconds,
        )

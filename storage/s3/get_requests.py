"""Builds signed GET and HEAD requests for objects at S3 and compatible services."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from podferry.contract.errors import CredentialsMissing
from podferry.contract.manifest import Entry
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.credentials.sources import AwsSource
from podferry.storage.request_builder import (
    USER_AGENT_LINE,
    Address,
    if_match_line,
    is_printable_ascii,
    range_line,
    request_address,
)
from podferry.storage.s3.credentials import S3CredentialsProvider, credentials_provider
from podferry.storage.s3.endpoint import S3Access
from podferry.storage.s3.sigv4 import SigV4Signer

UNRESERVED_NAME = re.compile(r"[A-Za-z0-9/._~-]+")
"""Names that need no encoding. Source: RFC 3986, 2.3."""
CHECKSUM_MODE_LINE = "x-amz-checksum-mode: ENABLED\r\n"


class S3GetBuilder:
    """See `podferry.storage.request_builder.RequestBuilder`."""

    checksum_needs_head = True

    def __init__(self, access: S3Access, address: Address, credentials: S3CredentialsProvider) -> None:
        self.origin = address.origin
        key = access.uri.key
        self._path_prefix = f"{address.path}/{quote(key)}/" if key else f"{address.path}/"
        self._lines = f" HTTP/1.1\r\nHost: {address.host}\r\n{USER_AGENT_LINE}"
        self._region, self._headers = access.region, access.request_headers
        self._host = address.host
        self._anonymous = access.source is AwsSource.ANONYMOUS
        lasting = access.reload_credentials is None and access.source in (AwsSource.ANONYMOUS, AwsSource.KEYS)
        self._credentials = RefreshedValue(credentials.load, lasting)
        self._signer: SigV4Signer | None = None

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """See `RequestBuilder.prepare`.

        Raises:
            CredentialsMissing: There are none, or they are not valid in a header.
        """
        del entries  # the same credentials sign all requests
        before = self._credentials.value
        await self._credentials.refresh()
        found = self._credentials.value
        if found is None or found == before:
            return
        if not is_printable_ascii(found.access_key_id + (found.session_token or "")):
            what = "a key or token for S3 is not valid in a header"
            raise CredentialsMissing.of(what, "", "Store it without line breaks")
        self._signer = SigV4Signer(found, self._region, self._host, get_headers=self._headers)

    def build(self, entry: Entry, start: int, length: int, method: str = "GET") -> bytes:
        """See `RequestBuilder.build`. The range is not signed: S3 does not require it.

        Only requests for complete objects ask for a checksum: S3 sends none with a range.

        Raises:
            CredentialsMissing: `prepare` was not called.
        """
        # Most names need no encoding; finding that out takes less than half of the time of encoding them.
        name = entry.name if UNRESERVED_NAME.fullmatch(entry.name) else quote(entry.name)
        path = self._path_prefix + name
        ranged = range_line(entry, start, length)
        signed = self._signed_lines(method, path, not ranged)
        return f"{method} {path}{self._lines}{ranged}{if_match_line(entry.tag)}{signed}\r\n".encode("ascii")

    def _signed_lines(self, method: str, path: str, checksum_mode: bool) -> str:
        if self._signer is not None:
            return self._signer.get_lines(method, path, checksum_mode)
        if not self._anonymous:
            raise CredentialsMissing.of("requests are not signed yet", "", "Prepare them first")
        return CHECKSUM_MODE_LINE if checksum_mode else ""


def get_builder_for(access: S3Access) -> S3GetBuilder | None:
    """The builder for a store, or None if only its engine can send requests.

    That is the case behind some proxies, and if awscrt would find other credentials than the engine.
    """
    address = request_address(access.bucket_url, access.network)
    if address is None or not is_printable_ascii(access.region):
        return None
    credentials = credentials_provider(access)
    return None if credentials is None else S3GetBuilder(access, address, credentials)

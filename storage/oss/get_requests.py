"""Builds signed GET and HEAD requests for the connection pool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from podferry.contract.errors import CredentialsMissing
from podferry.contract.manifest import Entry
from podferry.storage.oss.credentials import OssCredentials
from podferry.storage.oss.endpoint import OssAccess
from podferry.storage.oss.keys import OssKeys
from podferry.storage.oss.signature import Oss4Signer
from podferry.storage.request_builder import (
    USER_AGENT_LINE,
    Address,
    if_match_line,
    range_line,
    request_address,
)

UNRESERVED_NAME = re.compile(r"[A-Za-z0-9/._~-]+")
"""Names that need no encoding. Source: RFC 3986, 2.3."""


class OssGetBuilder:
    """See `podferry.storage.request_builder.RequestBuilder`."""

    checksum_needs_head = False

    def __init__(self, access: OssAccess, address: Address) -> None:
        self.origin = address.origin
        key = f"/{quote(access.uri.key)}" if access.uri.key else ""
        self._path = f"{address.path}{key}/"
        self._resource = f"/{access.bucket}{key}/"
        self._lines = f" HTTP/1.1\r\nHost: {address.host}\r\n{USER_AGENT_LINE}"
        self._region = access.region
        self._credentials = OssCredentials(access)
        self._keys: OssKeys | None = None
        self._signer: Oss4Signer | None = None

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """See `RequestBuilder.prepare`; raises what `OssCredentials.prepare` does."""
        del entries  # the same keys sign all requests
        await self._credentials.prepare()
        found = self._credentials.current
        if found is not None and found != self._keys:
            self._keys, self._signer = found, Oss4Signer(found, self._region)

    def build(self, entry: Entry, start: int, length: int, method: str = "GET") -> bytes:
        """See `RequestBuilder.build`. Neither range nor `If-Match` are signed: OSS does not require it.

        Raises:
            CredentialsMissing: `prepare` was not called.
        """
        name = entry.name if UNRESERVED_NAME.fullmatch(entry.name) else quote(entry.name)
        if self._signer is None and not self._credentials.anonymous:
            raise CredentialsMissing.of("requests are not signed yet", "", "Prepare them first")
        signed = self._signer.lines(method, self._resource + name) if self._signer else ""
        lines = f"{self._lines}{range_line(entry, start, length)}{if_match_line(entry.tag)}{signed}"
        return f"{method} {self._path}{name}{lines}\r\n".encode("ascii")


def get_builder_for(access: OssAccess) -> OssGetBuilder | None:
    """The builder for a store, or None if only Alibaba's client can send requests, as behind some proxies."""
    address = request_address(access.bucket_url, access.network)
    return None if address is None else OssGetBuilder(access, address)

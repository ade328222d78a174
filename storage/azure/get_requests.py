"""Builds GET and HEAD requests for Azure blobs.

With the account's key, a shared access signature, the token of an identity, or anonymously.
"""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Sequence
from email.utils import formatdate
from urllib.parse import quote

from podferry.contract.errors import CredentialsMissing
from podferry.contract.manifest import Entry
from podferry.storage.azure.credentials import (
    IDENTITIES,
    VALUES,
    AzureCredentialsProvider,
    AzureSource,
    decoded_key,
)
from podferry.storage.azure.endpoint import API_VERSION, AzureAccess, credentials_of
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.http.get_requests import PlainGetBuilder, PlainRequest
from podferry.storage.object_names import join
from podferry.storage.request_builder import (
    USER_AGENT_LINE,
    Address,
    RequestBuilder,
    if_match_line,
    is_printable_ascii,
    range_line,
    request_address,
)
from podferry.storage.timeouts_and_limits import Limits


class AzureGetBuilder:
    """Signs with the account's key; see `podferry.storage.request_builder.RequestBuilder`.

    Source: "Authorize with Shared Key", Azure Storage REST API reference.
    """

    checksum_needs_head = True

    def __init__(self, access: AzureAccess, address: Address, key: bytes) -> None:
        self.origin = address.origin
        self._path_prefix = _path_prefix(access, address)
        self._lines = f" HTTP/1.1\r\nHost: {address.host}\r\n{USER_AGENT_LINE}x-ms-version: {API_VERSION}\r\n"
        self._account = access.account
        self._key = hmac.new(key, digestmod="sha256")

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """See `RequestBuilder.prepare`: an account's key does not change."""

    def build(self, entry: Entry, start: int, length: int, method: str = "GET") -> bytes:
        """See `RequestBuilder.build`."""
        path = self._path_prefix + quote(entry.name)
        ranged, matched = range_line(entry, start, length), if_match_line(entry.tag)
        date = formatdate(time.time(), usegmt=True)
        # Header fields without a value are signed as empty lines.
        text = f"{method}\n\n\n\n\n\n{date}\n\n{_value(matched)}\n\n\n{_value(ranged)}\n"
        signature = self._key.copy()
        signature.update(f"{text}x-ms-version:{API_VERSION}\n/{self._account}{path}".encode())
        signed = base64.b64encode(signature.digest()).decode()
        lines = f"{ranged}{matched}Date: {date}\r\nAuthorization: SharedKey {self._account}:{signed}\r\n"
        return f"{method} {path}{self._lines}{lines}\r\n".encode("ascii")


def _value(line: str) -> str:
    return line.partition(": ")[2].rstrip("\r\n")


def _path_prefix(access: AzureAccess, address: Address) -> str:
    return f"{address.path}/{quote(join(access.container, access.uri.key))}/"


def get_builder_for(access: AzureAccess, limits: Limits) -> RequestBuilder | None:
    """The builder for a store, or None if only obstore can send requests.

    A key or signature is the one of the start: if it has changed, the store refuses it, and obstore reads
    with the new one.
    """
    address = request_address(access.endpoint, access.network)
    if address is None or not is_printable_ascii(access.account):
        return None
    if access.source is AzureSource.ANONYMOUS:
        return _plain(access, address)
    if access.source is AzureSource.TOKEN or access.source in IDENTITIES:
        credentials = credentials_of(access, limits)
        return _plain(access, address, token=RefreshedValue(lambda: _token_line(credentials)))
    value = access.variables[VALUES[access.source]]
    if access.source is AzureSource.KEY:
        return AzureGetBuilder(access, address, decoded_key(value))
    return _plain(access, address, query="?" + value.removeprefix("?"))


def _token_line(credentials: AzureCredentialsProvider) -> str:
    """The header line of the current token. Blocks."""
    found = credentials.load()
    value = found.value if found is not None else ""
    if not is_printable_ascii(value):
        raise CredentialsMissing.of("a token for Azure is not valid in a header", "", "Store it as one line")
    return f"Authorization: Bearer {value}\r\n"


def _plain(
    access: AzureAccess, address: Address, query: str = "", token: RefreshedValue[str] | None = None
) -> RequestBuilder | None:
    if not is_printable_ascii(query) or " " in query:
        return None
    prefix, version = _path_prefix(access, address), f"x-ms-version: {API_VERSION}\r\n"

    def path(name: str) -> str:
        return f"{prefix}{quote(name)}{query}"

    return PlainGetBuilder(PlainRequest(address, path, version, checksum_needs_head=True, token=token))

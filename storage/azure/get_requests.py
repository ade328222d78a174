"""Builds GET and HEAD requests for Azure blobs.

Only for credentials that need no service of their own: the account's key, a shared access signature, a given
token, anonymous access. If several are configured, only obstore sends requests, because it chooses.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Sequence
from email.utils import formatdate
from urllib.parse import quote

from podferry.contract.manifest import Entry
from podferry.storage.azure.endpoint import AzureAccess
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

API_VERSION = "2023-11-03"
"""Of Azure's API: the one that obstore uses."""


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
    return f"{address.path}/{quote(join(access.uri.bucket, access.uri.key))}/"


def get_builder_for(access: AzureAccess) -> RequestBuilder | None:
    """The builder for a store, or None if only obstore can send requests."""
    address = request_address(access.endpoint, access.network)
    if address is None or len(access.options) != 1 or not is_printable_ascii(access.account):
        return None
    ((kind, value),) = access.options.items()
    if kind == "account_key":
        key = _decoded(str(value))
        return None if key is None else AzureGetBuilder(access, address, key)
    if kind == "sas_key":
        return _plain(access, address, query="?" + str(value).removeprefix("?"))
    if kind == "token":
        return _plain(access, address, f"Authorization: Bearer {value}\r\n")
    return _plain(access, address) if kind == "skip_signature" else None


def _decoded(key: str) -> bytes | None:
    try:
        return base64.b64decode(key, validate=True)
    except binascii.Error:
        return None


def _plain(access: AzureAccess, address: Address, line: str = "", query: str = "") -> RequestBuilder | None:
    if not is_printable_ascii(line.removesuffix("\r\n") + query) or " " in query:
        return None
    prefix = _path_prefix(access, address)

    def path(name: str) -> str:
        return f"{prefix}{quote(name)}{query}"

    return PlainGetBuilder(
        PlainRequest(address, path, f"x-ms-version: {API_VERSION}\r\n{line}", checksum_needs_head=True)
    )

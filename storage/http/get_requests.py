"""Builds unsigned GET requests: for web servers, or with a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from podferry.contract.errors import CredentialsMissing
from podferry.contract.manifest import Entry
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.network.settings import Network
from podferry.storage.object_names import join
from podferry.storage.request_builder import (
    USER_AGENT_LINE,
    Address,
    RequestBuilder,
    if_match_line,
    range_line,
    request_address,
)


class PlainRequest(msgspec.Struct, frozen=True):
    """What the requests of a store have in common.

    Attributes:
        address: Where they go.
        path: Encodes the path and query of a name.
        lines: Header lines of each request, with their line ends.
        matches: Whether the store honors `If-Match` with a listing's tag.
        checksum_needs_head: See `podferry.storage.request_builder.RequestBuilder`.
        token: Further header lines that expire, such as those with a token.
    """

    address: Address
    path: Callable[[str], str]
    lines: str = ""
    matches: bool = True
    checksum_needs_head: bool = False
    token: RefreshedValue[str] | None = None


class PlainGetBuilder:
    """See `podferry.storage.request_builder.RequestBuilder`."""

    def __init__(self, plain: PlainRequest) -> None:
        self.origin = plain.address.origin
        self.checksum_needs_head = plain.checksum_needs_head
        self._plain = plain
        self._lines = f"HTTP/1.1\r\nHost: {plain.address.host}\r\n{USER_AGENT_LINE}{plain.lines}"

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """See `RequestBuilder.prepare`."""
        del entries  # one token serves all of them
        if self._plain.token is not None:
            await self._plain.token.refresh()

    def build(self, entry: Entry, start: int, length: int, method: str = "GET") -> bytes:
        """See `RequestBuilder.build`.

        Raises:
            CredentialsMissing: `prepare` has not been called.
        """
        token = self._plain.token.value if self._plain.token else ""
        if token is None:
            raise CredentialsMissing.of("requests have no token yet", "", "Prepare them first")
        match_header = if_match_line(entry.tag) if self._plain.matches else ""
        range_header = range_line(entry, start, length)
        text = f"{method} {self._plain.path(entry.name)} {self._lines}{range_header}{match_header}{token}\r\n"
        return text.encode("ascii")


def web_get_builder(
    url: str, key: str, network: Network, credentials: RefreshedValue[str] | None, *, pages: bool = True
) -> RequestBuilder | None:
    """The builder for the files of a web server, or None if only the engine can send requests.

    Args:
        url: Of the server.
        key: The path that names are relative to, not encoded.
        network: How to reach it.
        credentials: Header lines, or None.
        pages: See `podferry.storage.request_builder.Origin`.
    """
    address = request_address(url, network)
    if address is None:
        return None
    address = replace(address, origin=replace(address.origin, pages=pages))

    def path(name: str) -> str:
        return f"{address.path}/{quote(join(key, name))}"

    return PlainGetBuilder(PlainRequest(address, path, "Accept-Encoding: identity\r\n", token=credentials))

"""The interface for building HTTP requests, which a lean client needs to fetch objects without the engine.

For many small objects an engine takes more time than the network, and a plain GET needs little of it: an
address, a few header lines and a signature. The client that sends these requests hands anything but a plain
response to the engine, which retries and explains errors.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from typing import Protocol, runtime_checkable
from urllib.parse import urlsplit

import msgspec

from podferry.contract.manifest import Entry
from podferry.storage.network.proxies import DEFAULT_PORTS, Proxy
from podferry.storage.network.settings import DIRECT, Network
from podferry.storage.network.tls import tls_context

USER_AGENT_LINE = "User-Agent: podferry\r\n"
PLAIN_HOST = re.compile(r"[A-Za-z0-9.:_-]+")
"""Host names and addresses that need no encoding."""


class Origin(msgspec.Struct, frozen=True):
    """Where to connect.

    Attributes:
        host: Name or address; an IPv6 address without brackets.
        port: Of TCP.
        tls: Whether to use TLS.
        ca: CA certificates as PEM that are trusted in addition to the system's.
        tag_field: The response header that has an entry's tag, in lower case, or empty if none has; quotation
            marks do not matter. Not every server supports `If-Match`.
        proxy: Opens the connections, or None.
        pages: Whether the server may respond with a web page in the place of a file.
        ranges_in_address: Whether the address of a request has its range: its response is a complete one.
    """

    host: str
    port: int
    tls: bool
    ca: str = ""
    tag_field: str = "etag"
    proxy: Proxy | None = None
    pages: bool = False
    ranges_in_address: bool = False

    def ssl_context(self) -> ssl.SSLContext | None:
        """A context that trusts the same certificates as the store's engine, or None without TLS."""
        return tls_context(self.ca) if self.tls else None


class RequestBuilder(Protocol):
    """Builds the requests for ranges of objects.

    Calls: 1. `prepare`; 2. `build` for each request; `prepare` again every few seconds.
    """

    @property
    def origin(self) -> Origin:
        """Where to send all of the store's requests."""

    @property
    def checksum_needs_head(self) -> bool:
        """Whether only HEAD and complete GET responses have a checksum of the object, not those of ranges."""

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """Get the keys and tokens that `build` needs. Costs nothing if none are due.

        Raises:
            FerryError: There are none; the engine's own call says more.
        """

    def build(self, entry: Entry, start: int, length: int, method: str = "GET") -> bytes:
        """The request, with its final blank line, for `length` bytes from `start`. Sends nothing.

        A request for the complete object has no `Range`, and asks for its checksum. As far as the store
        supports it, the request fails if the object is not the version that `entry` names.
        """


@runtime_checkable
class PartialRequestBuilder(RequestBuilder, Protocol):
    """Builds requests for a server that has only some objects, or other versions of them."""

    def serves(self, entry: Entry) -> bool:
        """Whether the server has this version; the store's own client knows where else it is.

        `build` is called for no other: its response could have the bytes of another version, and no tag.
        """


class Address(msgspec.Struct, frozen=True):
    """A URL, split as requests need it.

    `host` is the value of the `Host` header: with the port unless it is the default. `path` is encoded as it
    is sent, without a trailing slash.
    """

    origin: Origin
    host: str
    path: str


def request_address(url: str, network: Network = DIRECT) -> Address | None:
    """Where to send requests below a URL.

    None if only the engine can: a password, an odd name, or a proxy other than an http one for an https URL.
    """
    split = urlsplit(url)
    host = split.hostname or ""
    if split.scheme not in DEFAULT_PORTS or "@" in split.netloc or not PLAIN_HOST.fullmatch(host):
        return None
    if split.query or split.fragment or not is_printable_ascii(split.path) or " " in split.path:
        return None
    proxy = network.proxies.proxy_for(url)
    if proxy is not None and (proxy.tls or split.scheme == "http"):
        return None
    default = DEFAULT_PORTS[split.scheme]
    origin = Origin(host, split.port or default, split.scheme == "https", network.ca.pem, proxy=proxy)
    port = "" if origin.port == default else f":{origin.port}"
    return Address(origin, (f"[{host}]" if ":" in host else host) + port, split.path.rstrip("/"))


def is_printable_ascii(text: str) -> bool:
    """Whether a text can be sent unencoded in a request: nothing in it ends a line."""
    return text.isascii() and text.isprintable()


def range_line(entry: Entry, start: int, length: int) -> str:
    """The `Range` header line, empty for the complete object."""
    return f"Range: bytes={start}-{start + length - 1}\r\n" if start or length != entry.size else ""


def if_match_line(tag: str) -> str:
    """The `If-Match` header line of a strong ETag; empty for any other, which no server would match."""
    return f"If-Match: {tag}\r\n" if tag.startswith('"') and is_printable_ascii(tag) else ""

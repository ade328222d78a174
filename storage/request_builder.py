"""The interface for building HTTP requests, which a lean client needs to fetch objects without the engine.

For many small objects an engine takes more time than the network, and a plain GET needs little of it: an
address, a few header lines and a signature. The client that sends these requests hands anything but a plain
response to the engine, which retries and explains errors.
"""

from __future__ import annotations

import functools
import os
import re
import ssl
import sys
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from podferry.contract.manifest import Entry

DEFAULT_PORTS = {"http": 80, "https": 443}
USER_AGENT_LINE = "User-Agent: podferry\r\n"
PLAIN_HOST = re.compile(r"[A-Za-z0-9.:_-]+")
"""Host names and addresses that need no encoding."""


class Origin(msgspec.Struct, frozen=True):
    """Where to connect.

    Attributes:
        host: Name or address; an IPv6 address without brackets.
        port: Of TCP.
        tls: Whether to use TLS.
        ca_bundle: A file of CA certificates that replaces the system's, or empty.
        tag_field: The response header that has an entry's tag, in lower case, or empty if none has; quotation
            marks do not matter. Not every server supports `If-Match`.
    """

    host: str
    port: int
    tls: bool
    ca_bundle: str = ""
    tag_field: str = "etag"

    def ssl_context(self) -> ssl.SSLContext | None:
        """A context that trusts the same certificates as the store's engine, or None without TLS."""
        return tls_context(self.ca_bundle) if self.tls else None


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


class Address(msgspec.Struct, frozen=True):
    """A URL, split as requests need it.

    `host` is the value of the `Host` header: with the port unless it is the default. `path` is encoded as it
    is sent, without a trailing slash.
    """

    origin: Origin
    host: str
    path: str


def request_address(url: str, ca_bundle: str = "") -> Address | None:
    """Where to send requests below a URL; None if only the engine can: a proxy, a password, an odd name."""
    split = urlsplit(url)
    host = split.hostname or ""
    if split.scheme not in DEFAULT_PORTS or "@" in split.netloc or not PLAIN_HOST.fullmatch(host):
        return None
    if split.query or split.fragment or not is_printable_ascii(split.path) or " " in split.path:
        return None
    if _is_proxied(split.scheme, host):
        return None
    default = DEFAULT_PORTS[split.scheme]
    origin = Origin(host, split.port or default, split.scheme == "https", ca_bundle)
    port = "" if origin.port == default else f":{origin.port}"
    return Address(origin, (f"[{host}]" if ":" in host else host) + port, split.path.rstrip("/"))


def _is_proxied(scheme: str, host: str) -> bool:
    """Whether the environment configures a proxy for this host, as the engines read it."""
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return False  # other systems may have more settings
    # Imported here: it imports all of the standard library's HTTP.
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415

    proxies = getproxies()
    return bool(proxies.get(scheme) or proxies.get("all")) and not proxy_bypass(host)


@functools.cache
def tls_context(ca_bundle: str = "") -> ssl.SSLContext:
    """Trusts a file of CA certificates, or by default what the engines trust: `SSL_CERT_FILE`, the system."""
    context = ssl.create_default_context(cafile=ca_bundle or None)
    context.set_alpn_protocols(["http/1.1"])
    return context


def is_printable_ascii(text: str) -> bool:
    """Whether a text can be sent unencoded in a request: nothing in it ends a line."""
    return text.isascii() and text.isprintable()


def range_line(entry: Entry, start: int, length: int) -> str:
    """The `Range` header line, empty for the complete object."""
    return f"Range: bytes={start}-{start + length - 1}\r\n" if start or length != entry.size else ""


def if_match_line(tag: str) -> str:
    """The `If-Match` header line of a strong ETag; empty for any other, which no server would match."""
    return f"If-Match: {tag}\r\n" if tag.startswith('"') and is_printable_ascii(tag) else ""

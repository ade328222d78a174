"""Which HTTP request fetches a range of an object: what a lean client needs to know of a store.

A store's engine lists, writes, repeats and explains. Of many small objects the time goes into the engine, not
into the network, and a plain GET needs little of it: an address, a few header lines and a signature. A store
that can say these gives `RequestBuilder`; who sends them takes a plain answer, and leaves all else to the
engine.
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
"""Of names and addresses that need no encoding of their own."""


class Origin(msgspec.Struct, frozen=True):
    """Where connections go.

    Attributes:
        host: Name or address; that of IPv6 without brackets.
        port: Of TCP.
        tls: Whether HTTP is spoken over TLS.
        ca_bundle: A file of certificates that stands in place of the system's; empty for those.
        tag_field: The field of an answer's head that repeats an entry's tag, in lower case, quotation marks
            aside; empty where none does. Not every server heeds `If-Match`.
    """

    host: str
    port: int
    tls: bool
    ca_bundle: str = ""
    tag_field: str = "etag"

    def ssl_context(self) -> ssl.SSLContext | None:
        """What TLS is spoken with: the certificates that the store's own engine trusts; None without TLS."""
        return tls_context(self.ca_bundle) if self.tls else None


class RequestBuilder(Protocol):
    """What to send for a range of an object."""

    @property
    def origin(self) -> Origin:
        """Where all of the store's requests go."""

    @property
    def checksum_needs_head(self) -> bool:
        """Whether a HEAD states a checksum of the whole object that answers with a range of it do not."""

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """Make ready what the next calls of `head` need: keys, tokens. Costs nothing where nothing is due.

        Called before the first `head`, and again every few seconds while there are more to come.

        Raises:
            FerryError: There is nothing to sign with; the engine's own call says more.
        """

    def build(self, entry: Entry, start: int, length: int, method: str = "GET") -> bytes:
        """The whole request, with its blank line, for `length` bytes from `start`. Sends nothing.

        Where that is the whole object there is no `Range`, and the store is asked for its checksum, too. The
        object must be the version that `entry` names, as far as the store can be asked for that.
        """


class Address(msgspec.Struct, frozen=True):
    """A URL in the parts that a request is made of.

    Attributes:
        origin: Where connections go.
        host: Value of the `Host` line: with the port where it is not the usual one.
        path: Encoded as it is sent, without a slash at its end.
    """

    origin: Origin
    host: str
    path: str


def request_address(url: str, ca_bundle: str = "") -> Address | None:
    """Where requests below a URL go; None where only the engine knows: a proxy, a password, an odd name.

    Args:
        url: Of the service, or of a bucket there.
        ca_bundle: See `Origin`.
    """
    split = urlsplit(url)
    host = split.hostname or ""
    if split.scheme not in DEFAULT_PORTS or "@" in split.netloc or not PLAIN_HOST.fullmatch(host):
        return None
    if split.query or split.fragment or not is_printable_ascii(split.path) or " " in split.path:
        return None
    if _is_proxied(split.scheme, host):
        return None
    usual = DEFAULT_PORTS[split.scheme]
    origin = Origin(host, split.port or usual, split.scheme == "https", ca_bundle)
    named = f"[{host}]" if ":" in host else host
    port = "" if origin.port == usual else f":{origin.port}"
    return Address(origin, named + port, split.path.rstrip("/"))


def _is_proxied(scheme: str, host: str) -> bool:
    """Whether the environment sends requests to this host through a proxy, as the engines read it."""
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return False  # elsewhere the system may have settings of its own
    # Loaded here: it brings all of the standard library's HTTP.
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415

    proxies = getproxies()
    return bool(proxies.get(scheme) or proxies.get("all")) and not proxy_bypass(host)


@functools.cache
def tls_context(ca_bundle: str = "") -> ssl.SSLContext:
    """Certificates of the system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`, as the engines find them.

    Args:
        ca_bundle: A file of certificates that stands in their location.
    """
    context = ssl.create_default_context(cafile=ca_bundle or None)
    context.set_alpn_protocols(["http/1.1"])
    return context


def is_printable_ascii(text: str) -> bool:
    """Whether a text can stand in a request as it is: nothing in it ends a line."""
    return text.isascii() and text.isprintable()


def range_line(entry: Entry, start: int, length: int) -> str:
    """The `Range` line, empty where all of the object is asked for."""
    if not start and length == entry.size:
        return ""
    return f"Range: bytes={start}-{start + length - 1}\r\n"


def if_match_line(tag: str) -> str:
    """The `If-Match` line of a strong ETag; empty for any other, which no server would find equal."""
    return f"If-Match: {tag}\r\n" if tag.startswith('"') and is_printable_ascii(tag) else ""

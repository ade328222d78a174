"""Which proxy a request goes through.

Variables as curl and Go read them: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, also in lower case, which
wins. Requests to this machine and to metadata services never go through a proxy, whose answer would be that
of another machine.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from podferry.contract.errors import InvalidSpec
from podferry.storage.network.hosts import is_host
from podferry.storage.network.no_proxy import EVERY_HOST, matches, parse_no_proxy, split_port

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
NEVER_PROXIED = (
    "localhost",
    "127.0.0.0/8",
    "::1",
    "169.254.0.0/16",  # link-local: the metadata services of AWS, Azure and Google, and EKS Pod Identity
    "fd00:ec2::/32",  # the same over IPv6
    "metadata.google.internal",
)
EVERYTHING = ("*", "0.0.0.0/0", "::/0")
"""Every host, in the terms of obstore's `proxy_excludes`, where `*` leaves out addresses."""
DEFAULT_PORTS = {"http": 80, "https": 443}


class Proxy(msgspec.Struct, frozen=True):
    """A proxy. `url` is `http://[user:password@]host:port`, or https."""

    url: str

    def __repr__(self) -> str:
        return f"Proxy({self})"

    def __str__(self) -> str:
        """The URL without user and password."""
        return f"{'https' if self.tls else 'http'}://{self.url.rpartition('@')[2].rpartition('//')[2]}"

    @property
    def tls(self) -> bool:
        """Whether the proxy itself is reached over TLS."""
        return self.url.startswith("https:")

    @property
    def host(self) -> str:
        """Name or address."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """Of TCP."""
        split = urlsplit(self.url)
        return split.port or DEFAULT_PORTS[split.scheme]

    @property
    def authorization(self) -> str:
        """The value of `Proxy-Authorization` (RFC 7617), or empty."""
        split = urlsplit(self.url)
        if not split.username:
            return ""
        user = f"{unquote(split.username)}:{unquote(split.password or '')}"
        return f"Basic {base64.b64encode(user.encode()).decode()}"


class Proxies(msgspec.Struct, frozen=True):
    """The proxies for `http` and `https` URLs, the entries of `NO_PROXY`, and those that match no host."""

    http: Proxy | None = None
    https: Proxy | None = None
    excluded: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def proxy_for(self, url: str) -> Proxy | None:
        """The proxy of a URL, or None if it is reached directly."""
        split = urlsplit(url)
        proxy = self.https if split.scheme == "https" else self.http
        host, port = (
            (split.hostname or "").lower().removesuffix("."),
            split.port or DEFAULT_PORTS.get(split.scheme, 0),
        )
        direct = any(matches(entry, host, port) for entry in (*NEVER_PROXIED, *self.excluded))
        return None if direct else proxy

    def excluded_for(self, url: str) -> tuple[str, ...]:
        """What a client whose first host is that of `url` reaches directly, as plain hosts and networks.

        Such a client (obstore's) also sends requests to the service of a role. Entries with a port are
        decided for this URL, and left out.
        """
        if EVERY_HOST in self.excluded:
            return EVERYTHING
        plain = (entry for entry in self.excluded if not split_port(entry)[1])
        own = () if self.proxy_for(url) else (urlsplit(url).hostname or "",)
        return tuple(dict.fromkeys([*NEVER_PROXIED, *plain, *own]))


def read_proxies(variables: Mapping[str, str]) -> Proxies:
    """The proxies that variables configure.

    Raises:
        InvalidSpec: The address of a proxy is not valid.
    """
    every = _proxy(variables, "ALL_PROXY")
    http, https = (_proxy(variables, name) or every for name in ("HTTP_PROXY", "HTTPS_PROXY"))
    return Proxies(http, https, *parse_no_proxy(_read(variables, "NO_PROXY")))


def has_proxies(variables: Mapping[str, str]) -> bool:
    """Whether variables configure a proxy."""
    return any(_read(variables, name) for name in PROXY_VARIABLES)


def _read(variables: Mapping[str, str], name: str) -> str:
    return (variables.get(name.lower()) or variables.get(name) or "").strip()


def _proxy(variables: Mapping[str, str], name: str) -> Proxy | None:
    text = _read(variables, name)
    if not text:
        return None
    url = (text if "://" in text else f"http://{text}").rstrip("/")
    if not _is_proxy_url(url):
        shown = text.rpartition("@")[2]  # never the password
        remedy = (
            "Write http://HOST:PORT, with %-escapes in a password; only http and https proxies are supported"
        )
        raise InvalidSpec.of(f"{name} is not the address of a proxy", repr(shown), remedy)
    return Proxy(url)


def _is_proxy_url(url: str) -> bool:
    try:
        split = urlsplit(url)
        known = split.scheme in DEFAULT_PORTS and is_host(split.hostname or "") and split.port != 0
    except ValueError:
        return False
    printable = url.isascii() and url.isprintable() and " " not in url
    return known and printable and not (split.path or split.query or split.fragment)

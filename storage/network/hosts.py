"""Which text is the name or the address of a host."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from podferry.contract.lazy_pattern import lazy_pattern

LABEL = lazy_pattern(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
"""RFC 1123, section 2.1, and the underscore, which internal names have."""
NUMBER = lazy_pattern(r"\d+|0[xX][0-9A-Fa-f]*")
"""A name that ends so is an address for URL parsers ("Host parsing", WHATWG URL)."""


def is_host(text: str) -> bool:
    """Whether this is a name, perhaps with a final dot, or an address without brackets."""
    if parse_address(text) is not None:
        return True
    labels = text.removesuffix(".").split(".")
    return all(map(LABEL.fullmatch, labels)) and not NUMBER.fullmatch(labels[-1])


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address, or None for a name."""
    try:
        return ip_address(text)
    except ValueError:
        return None

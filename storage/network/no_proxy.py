"""The entries of `NO_PROXY`: which hosts are reached without a proxy."""

from __future__ import annotations

from ipaddress import ip_network

from podferry.storage.network.hosts import is_host, parse_address

EVERY_HOST = "*"


def parse_no_proxy(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The entries, separated by commas or blanks, and those that match no host."""
    written = text.replace(",", " ").lower().split()
    entries = [entry.removesuffix(".") for entry in written]
    ignored = [entry for entry in written if not _can_match(entry.removesuffix("."))]
    return tuple(filter(_can_match, entries)), tuple(ignored)


def matches(entry: str, host: str, port: int) -> bool:
    """Whether an entry names a host: exactly, as a domain above it, or as a network."""
    if entry == EVERY_HOST:
        return True
    pattern, entry_port = split_port(entry)
    if entry_port and entry_port != str(port):
        return False
    address = parse_address(host)
    if address is not None:
        return _is_network(pattern) and address in ip_network(pattern, strict=False)
    domain = _domain(pattern)
    return host == domain or host.endswith(f".{domain}")


def split_port(entry: str) -> tuple[str, str]:
    """Split `host:port`, `[address]:port`, `address` or `network/bits`; the port may be empty."""
    if entry.startswith("["):
        pattern, _, rest = entry[1:].partition("]")
        return pattern, rest.removeprefix(":")
    if entry.count(":") == 1:
        pattern, _, port = entry.partition(":")
        return pattern.removesuffix("."), port
    return entry, ""


def _can_match(entry: str) -> bool:
    pattern, port = split_port(entry)
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
        return False
    return entry == EVERY_HOST or _is_network(pattern) or is_host(_domain(pattern))


def _domain(pattern: str) -> str:
    return pattern.removeprefix("*").removeprefix(".")


def _is_network(pattern: str) -> bool:
    try:
        ip_network(pattern, strict=False)
    except ValueError:
        return False
    return True

"""Who logs in at which host: what a URI says, and the keys of Secrets for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri


class Authority(NamedTuple):
    """What `user@host:port` of a URI names.

    Attributes:
        user: Empty without one.
        host: A name or an address without brackets.
        port: None without one.
    """

    user: str
    host: str
    port: int | None


def authority_of(uri: Uri) -> Authority:
    """The user, the host and the port of a URI.

    Args:
        uri: Of the store.

    Raises:
        InvalidSpec: The URI has no valid host and port.
    """
    user, _, rest = uri.bucket.rpartition("@")
    try:
        split = urlsplit(f"//{rest}")
        host, port = split.hostname or "", split.port
    except ValueError:
        host, port = "", None
    if not host or port == 0:
        remedy = f"Write {uri.scheme}://HOST/…, {uri.scheme}://HOST:PORT/… or {uri.scheme}://[ADDRESS]:PORT/…"
        raise InvalidSpec.of("the URI names no valid host and port", repr(rest), remedy)
    return Authority(user, host, port)


def server_address(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def login_values(variables: Mapping[str, str], secret_keys: Mapping[str, str]) -> dict[str, str]:
    """The value of each variable, or of the key of a Secret that means the same; empty without both."""
    return {name: variables.get(name) or variables.get(key, "") for name, key in secret_keys.items()}


def login_names(variables: Mapping[str, str], prefix: str, secret_keys: Mapping[str, str]) -> tuple[str, ...]:
    """Which variables with a prefix, and which keys of a Secret, are there: for messages."""
    keys = set(secret_keys.values())
    return tuple(sorted(name for name in variables if name.startswith(prefix) or name in keys))

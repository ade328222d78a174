"""Where a store's server is."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from podferry.contract.uri import Uri
from podferry.storage.request_builder import Origin, request_address
from podferry.storage.store import Store, StoreConfig

DEFAULT_PORTS = {"sftp": 22, "ssh": 22, "ftp": 21, "ftps": 990, "smb": 445}
"""Of schemes whose URI names the host. Source: IANA's registry of service names and port numbers."""
PORT_OF_HOST = "hdfs"
"""Scheme whose URI names a host only with a port; without one it may be a nameservice of several."""

OWN_ENCRYPTION = {
    "sftp": "not used: SSH encrypts instead",
    "ssh": "not used: SSH encrypts instead",
    "smb": "not used: SMB signs messages, and encrypts them where the server or SMB_ENCRYPTION demands it",
    "hdfs": "not used: HDFS has a protection of its own",
    "ftps": "begins as the engine does it: see the check `list`",
}
"""What to say of schemes whose engines encrypt in another way than from the first byte."""


class ServerAddress(msgspec.Struct, frozen=True):
    """A server.

    Attributes:
        origin: Where to connect, and whether with TLS.
        speaks_http: Whether a plain HTTP request gets a response.
        encryption: How the engine encrypts without TLS from the first byte; empty if it does not.
    """

    origin: Origin
    speaks_http: bool
    encryption: str = ""


def address_of(store: Store, uri: Uri, config: StoreConfig) -> ServerAddress | None:
    """The server of an opened store; None for local ones, and where only the engine knows."""
    if store.request_builder is not None:
        return ServerAddress(store.request_builder.origin, speaks_http=True)
    if config.endpoint is not None:
        address = request_address(config.endpoint, config.network)
        return None if address is None else ServerAddress(address.origin, speaks_http=True)
    if uri.scheme == "hf":
        from podferry.storage.huggingface.store import hub_endpoint  # noqa: PLC0415 - loads aiohttp

        address = request_address(hub_endpoint(config), config.network)
        return None if address is None else ServerAddress(address.origin, speaks_http=True)
    return _host_of(uri)


def _host_of(uri: Uri) -> ServerAddress | None:
    if uri.scheme not in {*DEFAULT_PORTS, PORT_OF_HOST}:
        return None
    split = urlsplit(f"//{uri.bucket}")
    port = split.port or DEFAULT_PORTS.get(uri.scheme)
    if port is None:
        return None
    origin = Origin(split.hostname or "", port, tls=False)
    return ServerAddress(origin, speaks_http=False, encryption=OWN_ENCRYPTION.get(uri.scheme, ""))

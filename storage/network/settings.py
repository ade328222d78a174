"""The network settings of one store, from the environment and its Secret."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podferry.storage.network.ca_bundle import SECRET_KEYS, CaBundle, read_ca_bundle
from podferry.storage.network.proxies import PROXY_VARIABLES, Proxies, has_proxies, read_proxies

NO_KEYS: Mapping[str, str] = {}
NETWORK_KEYS = frozenset(
    {*SECRET_KEYS, *(spelled for name in (*PROXY_VARIABLES, "NO_PROXY") for spelled in (name, name.lower()))}
)
"""Keys of a Secret that are about the network, whatever the store."""


class Network(msgspec.Struct, frozen=True):
    """How requests reach a store: certificates that are trusted in addition to the system's, and proxies."""

    ca: CaBundle = CaBundle()
    proxies: Proxies = Proxies()


DIRECT = Network()


def read_network(environ: Mapping[str, str], secret: Mapping[str, str] = NO_KEYS) -> Network:
    """The settings of an environment, with the CA bundle and the proxies of a store's Secret.

    Unlike credentials, they belong to the machine and its network, so a Secret does not hide the
    environment's bundles. Its proxies replace the environment's.

    Raises:
        InvalidSpec: A bundle cannot be read, or the address of a proxy is not valid.
    """
    proxies = read_proxies(secret if has_proxies(secret) else environ)
    return Network(read_ca_bundle(environ, secret), proxies)

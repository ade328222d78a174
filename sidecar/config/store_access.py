"""Builds a store's configuration: access settings of the spec, credentials of a Secret or the environment."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from podferry.contract.errors import CredentialsMissing, Problem, Refused
from podferry.contract.location_guards import LocationGuards
from podferry.contract.spec import Access
from podferry.storage.credentials.sources import config_from_directory, config_from_environment
from podferry.storage.network.proxies import read_proxies
from podferry.storage.store import StoreConfig


def store_config(
    access: Access, secret_dir: Path | None, guards: LocationGuards | None = None
) -> StoreConfig:
    """The configuration of a store.

    Args:
        access: Endpoint and region, if the spec names them.
        secret_dir: A mounted Secret, used instead of the environment; None for the environment.
        guards: For endpoints in the Secret, and data that manifests name; None outside Kubernetes.

    Raises:
        Refused: An endpoint in the Secret is not allowed.
        CredentialsMissing, InvalidSpec: The Secret is missing, or the credentials cannot be read.
    """
    config = _of_secret(access, secret_dir) if secret_dir else config_from_environment(os.environ)
    if config.network.proxies.ignored:
        _warn_of(config.network.proxies.ignored)
    if secret_dir and guards is not None:
        # Imported here, as its many expressions: nothing outside Kubernetes needs them.
        from podferry.contract.secret_endpoints import secret_endpoint_problems  # noqa: PLC0415

        found = (
            *secret_endpoint_problems(config.credentials, guards.endpoints),
            *_proxy_problems(config, guards),
        )
        Refused.raise_any(found)
    endpoint, region = access.endpoint or config.endpoint, access.region or config.region
    sources = guards.sources if guards else ()
    return msgspec.structs.replace(config, endpoint=endpoint, region=region, allowed_sources=sources)


def _proxy_problems(config: StoreConfig, guards: LocationGuards) -> Iterator[Problem]:
    """Proxies of a Secret, which see what endpoints see; those of the policy may have a password there."""
    from podferry.contract.secret_endpoints import endpoint_problems  # noqa: PLC0415 - as above

    given, own = (config.network.proxies, read_proxies(os.environ))
    known = {str(own.http), str(own.https)}
    for proxy in sorted({str(one) for one in (given.http, given.https) if one} - known):
        yield from endpoint_problems("the Secret's proxy", proxy, guards.endpoints)


def _of_secret(access: Access, mounted: Path) -> StoreConfig:
    """The configuration in a mounted Secret; if it is missing, its name may be misspelled, so it is named."""
    try:
        return config_from_directory(mounted, os.environ)
    except CredentialsMissing as error:
        if access.secret is None:
            raise
        named = (
            msgspec.structs.replace(one, measured=f"{one.measured}; Secret {access.secret}")
            for one in error.problems
        )
        raise CredentialsMissing(*named) from error


@functools.cache  # once, of however many stores
def _warn_of(ignored: tuple[str, ...]) -> None:
    # Imported here: nearly nobody needs it, and it loads much.
    from podferry.sidecar.runtime.log_setup import configure_unless_done, log  # noqa: PLC0415

    configure_unless_done()
    remedy = "write HOST, .DOMAIN, an address or a network such as 10.0.0.0/8, perhaps with :PORT"
    log.warning("NO_PROXY has entries that match no host", entries=", ".join(ignored), remedy=remedy)

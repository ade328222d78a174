"""Opens the store of a URI with the right engine, or says what to install."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.azure.place import web_address_problem
from podferry.storage.engine import Engine
from podferry.storage.engines import engine_for, engine_of
from podferry.storage.fsspec.engine import FSSPEC, ON_REQUEST
from podferry.storage.server_copy import ServerCopy
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS, Limits
from podferry.storage.unknown_scheme import not_installed, unknown_scheme


def open_store(uri: Uri, config: StoreConfig = StoreConfig(), limits: Limits = LIMITS) -> Store:  # noqa: B008
    """Open the store of a URI. Sends nothing: the first call reports a wrong bucket or key.

    Args:
        uri: Its `engine` option overrides the choice of the engine.
        config: Credentials, endpoint and region; `podferry.storage.credentials.sources` reads them.
        limits: Timeouts and sizes.

    Raises:
        UnknownScheme: No engine opens the scheme; the message says what to install.
        CredentialsMissing: There are none to sign requests with.
        InvalidSpec: The configuration contradicts itself.
    """
    if problem := web_address_problem(uri):
        raise InvalidSpec(problem)
    engine = _chosen_engine(uri)
    if any(find_spec(module) is None for module in engine.requires):
        raise not_installed(uri, engine.extra)
    module, _, name = engine.store.partition(":")
    store: Store = getattr(import_module(module), name)(uri, config, limits)
    return store


@asynccontextmanager
async def server_copy_between(
    source: Uri, target: Uri, configs: tuple[StoreConfig, StoreConfig]
) -> AsyncIterator[ServerCopy | None]:
    """Copies by complete keys, if both places are in one bucket of one service, reached in the same way."""
    if source.root != target.root or _access(configs[0]) != _access(configs[1]):
        yield None
        return
    root = open_store(target.root, configs[1])
    try:
        yield root.server_copy
    finally:
        await root.close()


def _access(config: StoreConfig) -> tuple[object, ...]:
    return config.endpoint, config.region, dict(config.credentials)


def _chosen_engine(uri: Uri) -> Engine:
    """The engine of a URI. Raises if it does not open the scheme."""
    engine = engine_for(uri)
    opened = (*engine.scheme_names, *(ON_REQUEST if engine is FSSPEC else ()))
    if uri.scheme in opened:
        return engine
    if engine is not FSSPEC or engine_of(uri.scheme):
        remedy = f"Leave ?engine={engine.name} out; it opens {', '.join(opened)}"
        what = f"the engine {engine.name} does not open {uri.scheme}://"
        raise InvalidSpec.of(what, str(uri), remedy)
    hints = import_module("podferry.storage.fsspec.install_hints")  # loads fsspec: not for others
    if not hints.is_known(uri.scheme):
        raise unknown_scheme(uri)
    return engine

"""Opens the store of a URI with the right engine, or says what to install."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import ENGINES, Uri
from podferry.storage import uri_schemes
from podferry.storage.local.store import LocalStore
from podferry.storage.memory.store import MemoryStore
from podferry.storage.server_copy import ServerCopy
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS, Limits


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
    engine = uri.engine or _default_engine(uri)
    if engine == "obstore":
        return _obstore(uri, config, limits)
    if engine == "local":
        return LocalStore(uri, limits)
    if engine == "memory":
        return MemoryStore(uri)
    return _fsspec(uri, config, limits)


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


def _default_engine(uri: Uri) -> str:
    if uri.scheme in ("file", "memory"):
        return "local" if uri.scheme == "file" else "memory"
    return "obstore" if uri.scheme in uri_schemes.OBSTORE_SCHEMES else "fsspec"


def _obstore(uri: Uri, config: StoreConfig, limits: Limits) -> Store:
    if uri.scheme not in uri_schemes.OBSTORE_SCHEMES:
        known = ", ".join(uri_schemes.OBSTORE_SCHEMES)
        remedy = f"Leave ?engine={ENGINES[0]} out; it opens {known}"
        raise InvalidSpec.of(f"the engine obstore does not open {uri.scheme}://", str(uri), remedy)
    engine = importlib.import_module("podferry.storage.obstore.store")
    store: Store = engine.ObstoreStore(uri, config, limits)
    return store


def _fsspec(uri: Uri, config: StoreConfig, limits: Limits) -> Store:
    # Imported here, like the engines: it takes longer than all of our modules.
    from fsspec.registry import get_filesystem_class  # noqa: PLC0415

    from podferry.storage.fsspec.install_hints import unknown_scheme  # noqa: PLC0415

    try:
        get_filesystem_class(uri.scheme)
    except (ValueError, ImportError) as error:
        raise unknown_scheme(uri) from error
    engine = importlib.import_module("podferry.storage.fsspec.store")
    store: Store = engine.FsspecStore(uri, config, limits)
    return store

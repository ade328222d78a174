"""All checks of a location, in the order in which one needs the other."""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec.structs import replace

from podferry.contract.errors import FerryError
from podferry.contract.uri import Uri
from podferry.storage.doctor.access import list_some, read_some, stat_single, write_some
from podferry.storage.doctor.address import address_of
from podferry.storage.doctor.connection import examine_connection
from podferry.storage.doctor.finding import Finding, Outcome, failed, ok, skipped
from podferry.storage.engines import engine_for
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS

QUICK = replace(LIMITS, retries=1, retry_seconds=5)
"""Someone waits for the answer: an outage is a finding."""


async def diagnose(uri: Uri, config: StoreConfig, *, write: bool = False) -> AsyncIterator[Finding]:
    """Yield the finding of each check; after a failure, those that need it are left out.

    Args:
        uri: A dataset, or a destination.
        config: How to reach it.
        write: Whether to write, race for a name and delete there as well.
    """
    try:
        store = open_store(uri, config, QUICK)
    except FerryError as error:
        yield failed("engine", error)
        return
    try:
        yield ok("engine", _engine(uri, config))
        async for finding in _of_store(store, uri, config, write=write):
            yield finding
    finally:
        await store.close()


async def _of_store(store: Store, uri: Uri, config: StoreConfig, *, write: bool) -> AsyncIterator[Finding]:
    address = address_of(store, uri, config)
    if address is not None:
        async for finding in examine_connection(address, QUICK.connect_seconds):
            yield finding
            if finding.outcome is Outcome.FAILED:
                return
    async for finding in _reading(store, uri, config):
        yield finding
    if not write:
        yield skipped("write", "not tried: --write writes a small object there, commits and deletes it")
        return
    async for finding in write_some(store):
        yield finding


async def _reading(store: Store, uri: Uri, config: StoreConfig) -> AsyncIterator[Finding]:
    """Of a location with files below it, or else of the single object that it is."""
    listed, found = await list_some(store)
    if found or not uri.name:
        yield listed
        async for finding in read_some(store, found):
            yield finding
        return
    parent = open_store(uri.parent, config, QUICK)
    try:
        single, found = await stat_single(parent, uri.name) or (listed, [])
        yield single
        async for finding in read_some(parent, found):
            yield finding
    finally:
        await parent.close()


def _engine(uri: Uri, config: StoreConfig) -> str:
    """Which engine opens the location, and the names of the credentials that it finds."""
    engine = engine_for(uri)
    declared = [name for one in engine.schemes if uri.scheme in one.names for name in one.credentials]
    present = [name for name in declared if config.credentials.get(name)]
    if not declared:
        return engine.name
    return f"{engine.name}; credentials: {', '.join(present) or 'none of ' + ', '.join(declared)}"

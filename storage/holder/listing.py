"""Lists a dataset whose files a holder may have."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import msgspec

from podferry.contract.cache_api import Filling, Holder
from podferry.contract.errors import TemporaryError
from podferry.contract.manifest import Manifest
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.holder.client import HolderClient, HolderUnavailable
from podferry.storage.holder.store import HolderStore
from podferry.storage.lazy_log import warn
from podferry.storage.listing.by_directory import OnEntry, ignore_entry
from podferry.storage.listing.dataset import Listing, open_listing
from podferry.storage.store import Store, StoreConfig

OnHeld = Callable[[HolderStore, Manifest], None]


async def open_held_listing(
    holder: Holder,
    uri: Uri,
    config: StoreConfig,
    is_frozen: Callable[[Manifest], bool],
    on_held: OnHeld = lambda store, manifest: None,
    on_entry: OnEntry = ignore_entry,
    is_away: Callable[[], bool] = lambda: True,
) -> Listing:
    """Open and list a dataset, of whose files a holder's are read from there.

    The source is listed, so that changes are seen, unless a frozen reference names what the holder has. The
    holder's list is used too where the source is away.

    Args:
        holder: Where to look first.
        uri: Of the dataset.
        config: How to reach its source.
        is_frozen: Whether a manifest is what the pod's reference has frozen.
        on_held: Called before the source is listed, which may take minutes: with the store, which the listing
            will have as well, and the files of the holder.
        on_entry: Called with each entry when the source lists it.
        is_away: Whether a source that cannot be listed is away, and the holder's list is as good.

    Raises:
        TemporaryError: The source cannot be listed now, and is not away.
        FerryError: See `open_listing`.
    """
    client = HolderClient(holder)
    try:
        held = await client.dataset(str(uri), _log_of_waiting(str(uri), holder.url))
        store = HolderStore(_source(uri, config, held.manifest), client, held)
        if is_frozen(held.manifest):
            listing = Listing(store.origin, held.manifest.uri, held.manifest.entries)
        else:
            on_held(store, held.manifest)
            listing = await _listed(store, uri, config, held.manifest, on_entry, is_away)
    except HolderUnavailable as error:
        await client.close()
        warn("the cache is not used", uri=str(uri), holder=holder.url, reason=str(error))
        return await open_listing(uri, config, on_entry)
    except BaseException:
        await client.close()
        raise
    return msgspec.structs.replace(listing, store=store, checksum_of=store.checksum_of, origin=store.origin)


def _log_of_waiting(uri: str, url: str) -> Callable[[Filling], None]:
    """Logs that a reader waits, at the 1st, 2nd, 4th, 8th … answer: a fill may take hours."""
    answers = count(1)

    def on_filling(filling: Filling) -> None:
        if next(answers).bit_count() == 1:
            done = f"{format_bytes(filling.bytes_done)} of {format_bytes(filling.bytes)}"
            warn("waiting for the cache, which is being filled", uri=uri, holder=url, done=done)

    return on_filling


async def _listed(
    store: HolderStore,
    uri: Uri,
    config: StoreConfig,
    manifest: Manifest,
    on_entry: OnEntry,
    is_away: Callable[[], bool],
) -> Listing:
    """The source's list, whose store becomes the origin; that of the holder if the source is away."""
    try:
        listing = await open_listing(uri, config, on_entry)
    except BaseException as error:
        if isinstance(error, TemporaryError) and is_away():
            what = "the source cannot be listed now: the list of the cache is used"
            warn(what, uri=str(uri), reason=str(error))
            return Listing(store.origin, manifest.uri, manifest.entries)
        await store.origin.close()
        raise
    await store.origin.close()
    store.origin = listing.store
    return listing


def _source(uri: Uri, config: StoreConfig, manifest: Manifest) -> Store:
    """The store that the names of a manifest are relative to, without asking it."""
    is_object = [entry.name for entry in manifest.entries] == [uri.name]
    return open_store(uri.parent if is_object else uri, config)

"""Lists a dataset with the help of a holder, if the pod has one."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from podferry.contract.cache_api import Holder
from podferry.contract.dataset_reference import Reference
from podferry.contract.errors import EmptyDataset
from podferry.contract.manifest import Manifest
from podferry.contract.uri import Uri
from podferry.sidecar.dataset.selection import ListDataset, Selection, select_manifest
from podferry.storage.holder.listing import OnHeld, open_held_listing
from podferry.storage.listing.by_directory import OnEntry
from podferry.storage.listing.dataset import Listing
from podferry.storage.store import StoreConfig

AWAY_SECONDS = 30.0
"""Without a listed file until a source that has listed some is away. One that breaks off its list, such as to
limit the rate of requests, is there: its files may be newer than those of the cache. More than a request that
stalls takes (20 s), and less than the patience with a store."""


def listing_near(
    holder: Holder,
    reference: Reference,
    selection: Selection,
    on_held: OnHeld,
    answered_at: Callable[[], float],
) -> ListDataset:
    """What lists a dataset: its source, with a holder's files where it has them.

    Args:
        holder: Where to look for the files first.
        reference: If it is frozen, and the holder has that version, the source is not listed.
        selection: The reference's digest is that of the selected files.
        on_held: Called with what the holder has, before the source is listed.
        answered_at: When the source last listed a file, by `time.monotonic`.
    """

    def is_frozen(manifest: Manifest) -> bool:
        with suppress(EmptyDataset):
            return select_manifest(manifest, reference.uri, selection).digest == reference.digest
        return False

    def is_away() -> bool:
        return time.monotonic() - answered_at() > AWAY_SECONDS

    async def list_near(uri: Uri, config: StoreConfig, on_entry: OnEntry) -> Listing:
        return await open_held_listing(holder, uri, config, is_frozen, on_held, on_entry, is_away)

    return list_near

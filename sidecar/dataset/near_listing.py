"""Lists a dataset with the help of a holder, if the pod has one."""

from __future__ import annotations

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


def listing_near(holder: Holder, reference: Reference, selection: Selection, on_held: OnHeld) -> ListDataset:
    """What lists a dataset: its source, with a holder's files where it has them.

    Args:
        holder: Where to look for the files first.
        reference: If it is frozen, and the holder has that version, the source is not listed.
        selection: The reference's digest is that of the selected files.
        on_held: Called with what the holder has, before the source is listed.
    """

    def is_frozen(manifest: Manifest) -> bool:
        with suppress(EmptyDataset):
            return select_manifest(manifest, reference.uri, selection).digest == reference.digest
        return False

    async def list_near(uri: Uri, config: StoreConfig, _: OnEntry) -> Listing:
        return await open_held_listing(holder, uri, config, is_frozen, on_held)

    return list_near

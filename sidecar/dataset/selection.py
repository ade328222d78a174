"""Which files of a dataset a pod gets: those that the globs select, and of these the pod's shard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec

from podferry.contract.errors import Changed, EmptyDataset, FerryError, PermanentError, Refused
from podferry.contract.manifest import Entry, Manifest, freeze
from podferry.contract.pack import is_pack
from podferry.contract.selection import select, shard_of
from podferry.contract.spec import Shard, Unpack
from podferry.contract.uri import Uri
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.pack.reader import Pack, open_pack
from podferry.storage.listing.by_directory import OnEntry, ignore_entry
from podferry.storage.listing.dataset import Listing, changed_since, open_listing
from podferry.storage.store import Store, StoreConfig

MAX_NAMES_SHOWN = 3
"""Names in a message: enough to recognise a typo, few enough to read."""
MAX_NAMES_COMPARED = 2000
"""Names compared with a glob: each comparison takes some microseconds, and the first names suffice."""
MIN_SIMILARITY = 0.3
"""From which a name is suggested: a glob does not contain what its stars match."""


ListDataset = Callable[[Uri, StoreConfig, OnEntry], Awaitable[Listing]]


class Selection(msgspec.Struct, frozen=True):
    """Globs over relative names: a file matches one of `include`, or this is empty, and none of `exclude`."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def apply(self, uri: Uri, entries: Sequence[Entry]) -> list[Entry]:
        """The selected entries; if none, `EmptyDataset` gives the number of files and the nearest names."""
        if not self.include and not self.exclude:
            return list(entries)
        matching = select(entries, self.include, self.exclude)
        if not matching:
            raise self._no_match(uri, entries)
        return matching

    def _no_match(self, uri: Uri, entries: Sequence[Entry]) -> EmptyDataset:
        what = f"the selection leaves nothing of {uri}"
        included = select(entries, self.include, ())
        if included:
            measured = f"{_files(len(included))} to include, all of them excluded by {' '.join(self.exclude)}"
            return EmptyDataset.of(what, measured, "Exclude less")
        measured = f"none of {_files(len(entries))} matches {' '.join(self.include)}"
        return EmptyDataset.of(what, measured, f"The nearest names are {', '.join(self._nearest(entries))}")

    def _nearest(self, entries: Sequence[Entry]) -> list[str]:
        names = sorted(entry.name for entry in entries)[:MAX_NAMES_COMPARED]
        from difflib import get_close_matches  # noqa: PLC0415 - only for a glob that matches nothing

        pattern = " ".join(self.include).replace("*", "")
        nearest = get_close_matches(pattern, names, n=MAX_NAMES_SHOWN, cutoff=MIN_SIMILARITY)
        return nearest or names[:MAX_NAMES_SHOWN]


def select_manifest(manifest: Manifest, uri: Uri, selection: Selection) -> Manifest:
    """The manifest of the selected files, with a digest of its own; see `Selection.apply`."""
    if selection == Selection():
        return manifest
    return freeze(manifest.uri, selection.apply(uri, manifest.entries))


class SelectedDataset(msgspec.Struct, frozen=True):
    """An open dataset, and the files selected from it.

    Attributes:
        source: Where the files are fetched from; close its store when done.
        manifest: The selected files; of a pack, the selected members.
        frozen: What a reference's digest identifies: the selected files, but of a pack its objects.
        stored_manifest: The full manifest, if it was read instead of listed.
        pack: Locates the members, if this is a pack that is to be unpacked.
    """

    source: FetchSource
    manifest: Manifest
    frozen: Manifest
    stored_manifest: Manifest | None = None
    pack: Pack | None = None

    @property
    def store(self) -> Store:
        """The names are relative to it."""
        return self.source.store


async def open_selected(
    uri: Uri,
    selection: Selection,
    config: StoreConfig,
    unpack: Unpack = Unpack.NEVER,
    on_entry: OnEntry = ignore_entry,
    list_dataset: ListDataset = open_listing,
) -> SelectedDataset:
    """Open and list a dataset, and select from it: of a pack its members, unless `unpack` is NEVER.

    Args:
        uri: Of the dataset.
        config: How to reach it.
        selection: The files to take.
        unpack: Which archives are unpacked.
        on_entry: Called with each entry when it is listed.
        list_dataset: Opens and lists; see `podferry.storage.listing.dataset.open_listing`.

    Raises:
        EmptyDataset: It does not exist, or no file is selected.
        Corrupt: Selected names cannot be files.
        TemporaryError: The store does not answer.
    """
    listing = await list_dataset(uri, config, on_entry)
    source = FetchSource(listing.store, checksum_of=listing.checksum_of, origin=listing.origin)
    try:
        if is_pack(listing.entries, unpack):
            frozen = listing.manifest or freeze(listing.uri, listing.entries)
            pack = await open_pack(listing.store, frozen)
            manifest = select_manifest(pack.manifest, uri, selection)
            return SelectedDataset(source, manifest, frozen, listing.manifest, pack)
        if listing.manifest is not None:
            manifest = select_manifest(listing.manifest, uri, selection)
            await _reach(listing)
        else:
            manifest = freeze(listing.uri, selection.apply(uri, listing.entries))
        return SelectedDataset(source, manifest, manifest, listing.manifest)
    except FerryError:
        await listing.store.close()
        raise


async def _reach(listing: Listing) -> None:
    """Ask for a file of a manifest: a fetch is patient with its store, and this one has not been listed.

    What else is wrong, the fetch reports. A holder has been asked for its list.
    """
    if listing.origin is None:
        with suppress(PermanentError):
            await listing.store.stat(listing.entries[0].name)


async def with_changes_since_frozen(error: FerryError, manifest: Manifest, config: StoreConfig) -> FerryError:
    """An error of a fetch, together with everything else that differs from the manifest by now."""
    changed = None
    with suppress(FerryError):
        changed = await changed_since(manifest, config)
    return Changed(*error.problems, *(changed.problems if changed else ()))


def shard_manifest(manifest: Manifest, shard: Shard | None) -> Manifest:
    """One pod's shard, with a digest of its own; `Refused` if it is empty: fewer files than pods."""
    if shard is None:
        return manifest
    entries = shard_of(manifest.entries, shard)
    if not entries:
        measured = f"{_files(manifest.files)}, part {shard.rank} of {shard.count}, which count from 0"
        remedy = "Use fewer pods, or more and smaller files"
        raise Refused.of(f"this pod's part of {manifest.uri} holds no file", measured, remedy)
    return freeze(manifest.uri, entries)


def _files(count: int) -> str:
    return f"{count:,} file{'s' * (count != 1)}"

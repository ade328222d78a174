"""What of a dataset is wanted: the files that its selection leaves, and of those one pod's part."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches

import msgspec

from podferry.contract.errors import Changed, EmptyDataset, FerryError, Refused
from podferry.contract.manifest import Entry, Manifest, freeze
from podferry.contract.pack import is_pack
from podferry.contract.selection import select, shard_of
from podferry.contract.spec import Shard, Unpack
from podferry.contract.uri import Uri
from podferry.sidecar.pack.reader import Pack, open_pack
from podferry.storage.listing.by_directory import OnEntry, ignore_entry
from podferry.storage.listing.dataset import changed_since, open_listing
from podferry.storage.store import Store, StoreConfig

MAX_NAMES_SHOWN = 3
"""Names that a message shows: enough to recognise a slip, few enough to read."""
MAX_NAMES_COMPARED = 2000
"""Names that are compared with a glob: each comparison takes some microseconds, and the first names tell."""
NEAR = 0.3
"""Likeness from which a name is near: a glob lacks what its stars stand for."""


class Selection(msgspec.Struct, frozen=True):
    """Globs over relative names, as `podferry.contract.selection` reads them.

    Attributes:
        include: One of them must match; none for all files.
        exclude: None of them may match.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def of(self, uri: Uri, entries: Sequence[Entry]) -> list[Entry]:
        """What it leaves of a listing.

        Raises:
            EmptyDataset: Nothing, with how many files there are and the nearest names.
        """
        if not self.include and not self.exclude:
            return list(entries)
        left = select(entries, self.include, self.exclude)
        if not left:
            raise self._nothing(uri, entries)
        return left

    def _nothing(self, uri: Uri, entries: Sequence[Entry]) -> EmptyDataset:
        what = f"the selection leaves nothing of {uri}"
        included = select(entries, self.include, ())
        if included:
            measured = f"{_files(len(included))} to include, all of them excluded by {' '.join(self.exclude)}"
            return EmptyDataset.of(what, measured, "Exclude less")
        measured = f"none of {_files(len(entries))} is one of {' '.join(self.include)}"
        return EmptyDataset.of(what, measured, f"The nearest names are {', '.join(self._nearest(entries))}")

    def _nearest(self, entries: Sequence[Entry]) -> list[str]:
        names = sorted(entry.name for entry in entries)[:MAX_NAMES_COMPARED]
        wanted = " ".join(self.include).replace("*", "")
        return get_close_matches(wanted, names, n=MAX_NAMES_SHOWN, cutoff=NEAR) or names[:MAX_NAMES_SHOWN]


def selected(manifest: Manifest, uri: Uri, selection: Selection) -> Manifest:
    """The manifest of what a selection leaves, and with it the digest that names that.

    Args:
        manifest: What was frozen.
        uri: What messages call it.
        selection: The globs.

    Raises:
        EmptyDataset: Nothing.
    """
    return manifest if selection == Selection() else freeze(manifest.uri, selection.of(uri, manifest.entries))


class SelectedDataset(msgspec.Struct, frozen=True):
    """A dataset that is open, and what of it is wanted.

    Attributes:
        store: Where the names are relative to; close it when done.
        manifest: What the selection leaves; of a pack, of its members.
        named: What a reference names: the same, but of a pack the objects that it consists of.
        source: The whole manifest, where it was read rather than listed.
        pack: Where the members lie, where it is a pack that is to be unpacked.
    """

    store: Store
    manifest: Manifest
    named: Manifest
    source: Manifest | None = None
    pack: Pack | None = None


async def open_selected(
    uri: Uri,
    selection: Selection,
    config: StoreConfig,
    unpack: Unpack = Unpack.NEVER,
    seen: OnEntry = ignore_entry,
) -> SelectedDataset:
    """Open and list a dataset, and select from it.

    Args:
        uri: Where it lies.
        selection: What of it is wanted.
        config: How it is reached.
        unpack: Whether a pack stands for its members.
        seen: See `open_listing`.

    Raises:
        EmptyDataset: Nothing is there, or nothing is left.
        Corrupt: Names that cannot be files, among those that are left.
    """
    listing = await open_listing(uri, config, seen)
    try:
        if is_pack(listing.entries, unpack):
            named = listing.manifest or freeze(listing.uri, listing.entries)
            pack = await open_pack(listing.store, named)
            manifest = selected(pack.manifest, uri, selection)
            return SelectedDataset(listing.store, manifest, named, listing.manifest, pack)
        if listing.manifest is not None:
            manifest = selected(listing.manifest, uri, selection)
        else:
            manifest = freeze(listing.uri, selection.of(uri, listing.entries))
        return SelectedDataset(listing.store, manifest, manifest, listing.manifest)
    except FerryError:
        await listing.store.close()
        raise


async def since_frozen(error: FerryError, source: Manifest, config: StoreConfig) -> FerryError:
    """What went wrong while the files of a manifest were fetched, and what else is no longer as it says."""
    changed = None
    with suppress(FerryError):
        changed = await changed_since(source, config)
    return Changed(*error.problems, *(changed.problems if changed else ()))


def part_of(manifest: Manifest, shard: Shard | None) -> Manifest:
    """One pod's part of a selection, with a digest of its own: another part is another content of a stage.

    Raises:
        Refused: There are fewer files than pods, and none is left for this one.
    """
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

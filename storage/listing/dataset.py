"""Lists a dataset, or says by name why there is none.

A dataset is a prefix, one object, or what a manifest names: a file that ends with `.podferry.json`, as
`podferry dataset freeze --manifest` writes it. Of a manifest nothing is listed: its files are fetched as they
were, by the tags that they had.
"""

from __future__ import annotations

import msgspec

from podferry.contract.errors import Changed, Corrupt, EmptyDataset, NotFound
from podferry.contract.manifest import Entry, Manifest, decode_manifest, differences, freeze, is_manifest_name
from podferry.contract.quantity import format_bytes
from podferry.contract.reference import Reference
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.factory import open_store
from podferry.storage.listing.by_directory import OnEntry, ignore_entry, list_entries
from podferry.storage.listing.suggestions import empty_dataset, remedy_for_empty
from podferry.storage.store import Store, StoreConfig
from podferry.storage.uri_schemes import OBSTORE_SCHEMES

MANIFEST_DATA_SCHEMES = (*OBSTORE_SCHEMES, "gs", "gcs", "oss", "http", "https")
"""Where a manifest's data may lie, wherever it lies itself. Other URIs name this machine, or a host to which
the credentials are sent as they are: a manifest is somebody's document, and must not choose that."""


class Listing(msgspec.Struct, frozen=True):
    """What lies at a dataset's location, in any order; whether the names can be files, `freeze` finds.

    Attributes:
        store: Opened where the names are relative to; close it when done.
        uri: What the manifest's URI becomes: for one object its own, not that of the store.
        entries: The files.
        manifest: What was frozen, where a manifest was the source: then its entries.
    """

    store: Store
    uri: str
    entries: tuple[Entry, ...]
    manifest: Manifest | None = None


class Dataset(msgspec.Struct, frozen=True):
    """A dataset that has been listed.

    Attributes:
        store: Opened where the manifest's names are relative to, for one object above it; close it when done.
        manifest: Its files.
    """

    store: Store
    manifest: Manifest


async def open_dataset(uri: Uri, config: StoreConfig) -> Dataset:
    """Open and list a dataset.

    Raises:
        EmptyDataset: Nothing is there; it names the nearest prefixes that exist.
        Corrupt: Names that cannot be files below one directory; a manifest that does not agree with itself.
    """
    listing = await open_listing(uri, config)
    try:
        return Dataset(listing.store, listing.manifest or freeze(listing.uri, listing.entries))
    except Corrupt:
        await listing.store.close()
        raise


async def open_listing(uri: Uri, config: StoreConfig, seen: OnEntry = ignore_entry) -> Listing:
    """Open and list a dataset, whatever its names are.

    Args:
        uri: Where it lies.
        config: How it is reached.
        seen: Is told of each entry of a prefix when it is listed; whether all can be files is known later.

    Raises:
        EmptyDataset: Nothing is there; it names the nearest prefixes that exist.
        Corrupt, FormatTooNew: What should be a manifest is none that this podferry reads.
    """
    if is_manifest_name(uri.name):
        return await _of_manifest(uri, config)
    return await _below(uri, config, seen) or await _single(uri, config)


async def _below(uri: Uri, config: StoreConfig, seen: OnEntry) -> Listing | None:
    store = open_store(uri, config)
    try:
        entries = tuple(await list_entries(store, seen))
    except BaseException:
        await store.close()
        raise
    if entries:
        return Listing(store, str(uri), entries)
    await store.close()
    return None


async def _single(uri: Uri, config: StoreConfig) -> Listing:
    store = open_store(uri.parent, config)
    try:
        if uri.name:
            found = await store.stat(uri.name)
            return Listing(store, str(uri), (Entry(uri.name, found.size, found.tag),))
    except NotFound:
        pass
    except BaseException:
        await store.close()
        raise
    await store.close()
    raise await empty_dataset(uri, await remedy_for_empty(uri, config))


async def _of_manifest(uri: Uri, config: StoreConfig) -> Listing:
    location = await _single(uri, config)
    try:
        data = await location.store.read(uri.name, tag=location.entries[0].tag)
    finally:
        await location.store.close()
    manifest = decode_manifest(bytes(data), str(uri))
    if not manifest.entries:
        raise EmptyDataset.of("the dataset is empty", f"the manifest {uri} names no file")
    store = await _store_of(_data_uri(uri, manifest), manifest, config)
    return Listing(store, manifest.uri, manifest.entries, manifest)


def _data_uri(uri: Uri, manifest: Manifest) -> Uri:
    data = parse_uri(manifest.uri)
    here = (uri.scheme, uri.bucket)
    if (
        uri.scheme != "file"
        and data.scheme not in MANIFEST_DATA_SCHEMES
        and (data.scheme, data.bucket) != here
    ):
        raise Corrupt.of(
            f"the manifest {uri} names data in a place that none but a local manifest may name",
            manifest.uri,
            "Lay the manifest beside its data, or bring it to this machine first",
        )
    return data


async def _store_of(uri: Uri, manifest: Manifest, config: StoreConfig) -> Store:
    """Where a manifest's names are relative to: above an object that is a dataset of its own."""
    names = [entry.name for entry in manifest.entries[:2]]
    if names != [uri.name]:
        return open_store(uri, config)
    above = open_store(uri.parent, config)
    try:
        await above.stat(uri.name)
    except NotFound:
        await above.close()
        return open_store(uri, config)
    except BaseException:
        await above.close()
        raise
    return above


async def list_dataset(store: Store) -> Manifest:
    """All files below the store's URI.

    Raises:
        EmptyDataset: Nothing is there.
        Corrupt: Names that cannot be files below one directory.
    """
    entries = [entry async for entry in store.entries()]
    if not entries:
        raise await empty_dataset(store.uri)
    return freeze(str(store.uri), entries)


def check_frozen(reference: Reference, manifest: Manifest, before: Manifest | None = None) -> None:
    """Compare what was listed with what a frozen reference promised.

    Args:
        reference: The promise.
        manifest: What was listed.
        before: The list that the reference names, where it is at hand: then what changed is named.

    Raises:
        Changed: They differ.
    """
    if not reference.frozen or reference.digest == manifest.digest:
        return
    found = f"{manifest.files} files, {format_bytes(manifest.bytes)}, sha256={manifest.digest}"
    measured = f"frozen: {_promised(reference)}; now: {found}"
    if before is not None and before.digest == reference.digest:
        measured = f"{differences(before.entries, manifest.entries)}; {measured}"
    raise Changed.of(
        f"the dataset {reference.uri} is no longer the one that was frozen",
        measured,
        "Freeze it again with `podferry dataset freeze`, or restore the objects",
    )


def _promised(reference: Reference) -> str:
    sized = reference.files is not None and reference.bytes is not None
    counts = f"{reference.files} files, {format_bytes(reference.bytes or 0)}, " if sized else ""
    return f"{counts}sha256={reference.digest}"


async def changed_since(manifest: Manifest, config: StoreConfig) -> Changed | None:
    """What differs now from a manifest, for the message of a fetch that met something else; None for nothing.

    Raises:
        EmptyDataset and the store's errors: It cannot be listed.
    """
    listing = await open_listing(parse_uri(manifest.uri), config)
    await listing.store.close()
    found = differences(manifest.entries, listing.entries)
    if not found:
        return None
    return Changed.of(
        f"the dataset {manifest.uri} is no longer the one of its manifest",
        str(found),
        "Freeze it again with `podferry dataset freeze --manifest`, or restore the objects",
    )

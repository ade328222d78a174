"""Lists a dataset, or says why there is none.

A dataset is a prefix, one object, or what a manifest names: a file ending with `.podferry.json`, written by
`podferry dataset freeze --manifest`. The files of a manifest are not listed: they are fetched by its tags.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec

from podferry.contract.dataset_reference import Reference
from podferry.contract.errors import (
    AccessDenied,
    Changed,
    Corrupt,
    EmptyDataset,
    FerryError,
    NotFound,
    Refused,
)
from podferry.contract.location_guards import source_problem
from podferry.contract.manifest import Entry, Manifest, decode_manifest, differences, freeze, is_manifest_name
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.checksum.checksums import ChecksumOf, unknown_checksum
from podferry.storage.credentials.web import without_web_credentials
from podferry.storage.factory import open_store
from podferry.storage.listing.by_directory import OnEntry, ignore_entry, list_entries
from podferry.storage.listing.single_object import stat_file
from podferry.storage.listing.suggestions import empty_dataset, remedy_for_empty
from podferry.storage.obstore.engine import OBSTORE
from podferry.storage.store import Store, StoreConfig

WEB_SERVERS = ("http", "https")
MANIFEST_DATA_SCHEMES = (*OBSTORE.scheme_names, "gs", "gcs", "oss", "hf", *WEB_SERVERS)
"""Of the data that any manifest may name. Other URIs name this machine, or a host that would receive the
credentials as they are: a manifest may come from a stranger, who must not choose that."""


class Listing(msgspec.Struct, frozen=True):
    """A listed dataset, in any order; whether its names are valid file names, `freeze` finds out.

    Attributes:
        store: The names are relative to it; close it when done.
        uri: The URI for the dataset's manifest: of a single object its own, not the store's.
        entries: The files.
        manifest: The manifest that the entries come from, or None if they were listed.
        checksum_of: A file's checksum, if it is known before the file is fetched.
        origin: Where bytes are fetched that were damaged; None for `store`.
    """

    store: Store
    uri: str
    entries: tuple[Entry, ...]
    manifest: Manifest | None = None
    checksum_of: ChecksumOf = unknown_checksum
    origin: Store | None = None


class Dataset(msgspec.Struct, frozen=True):
    """A listed dataset with valid file names, relative to its store: close that when done."""

    store: Store
    manifest: Manifest


async def open_dataset(uri: Uri, config: StoreConfig) -> Dataset:
    """Open and list a dataset.

    Raises:
        EmptyDataset: There are no files; the message suggests existing prefixes.
        Corrupt: Names that cannot be files below one directory; an inconsistent manifest.
    """
    listing = await open_listing(uri, config)
    try:
        return Dataset(listing.store, listing.manifest or freeze(listing.uri, listing.entries))
    except Corrupt:
        await listing.store.close()
        raise


async def open_listing(uri: Uri, config: StoreConfig, on_entry: OnEntry = ignore_entry) -> Listing:
    """Open and list a dataset, without checking its names.

    Args:
        uri: Of the dataset.
        config: How to reach it.
        on_entry: Called with each entry of a prefix when it is listed, before the names are checked.

    Raises:
        EmptyDataset: There are no files; the message suggests existing prefixes.
        Corrupt, FormatTooNew: This podferry cannot read the manifest.
        Refused: The manifest names data that the policy does not allow.
    """
    if is_manifest_name(uri.name):
        return await _list_manifest(uri, config)
    try:
        return await _list_prefix(uri, config, on_entry) or await _list_object(uri, config)
    except AccessDenied as denied:  # who may not list may still read an object by its name
        with suppress(FerryError):
            return await _list_object(uri, config)
        raise denied from denied.__cause__


@asynccontextmanager
async def _closed_on_failure(uri: Uri, config: StoreConfig) -> AsyncIterator[Store]:
    store = open_store(uri, config)
    try:
        yield store
    except BaseException:
        await store.close()
        raise


async def _list_prefix(uri: Uri, config: StoreConfig, on_entry: OnEntry) -> Listing | None:
    async with _closed_on_failure(uri, config) as store:
        entries = tuple(await list_entries(store, on_entry))
    if entries:
        return Listing(store, str(uri), entries)
    await store.close()
    return None


async def _list_object(uri: Uri, config: StoreConfig) -> Listing:
    async with _closed_on_failure(uri.parent, config) as store:
        with suppress(NotFound):
            if uri.name:
                found = await stat_file(store, uri.name)
                return Listing(store, str(uri), (Entry(uri.name, found.size, found.tag),))
    await store.close()
    raise await empty_dataset(uri, await remedy_for_empty(uri, config))


async def _list_manifest(uri: Uri, config: StoreConfig) -> Listing:
    file = await _list_object(uri, config)
    try:
        data = await file.store.read(uri.name, tag=file.entries[0].tag)
    finally:
        await file.store.close()
    manifest = decode_manifest(bytes(data), str(uri))
    if not manifest.entries:
        raise EmptyDataset.of("the dataset is empty", f"the manifest {uri} names no files")
    data_uri = _data_uri(uri, manifest)
    location = f"{data_uri.scheme}://{data_uri.bucket}/{data_uri.key}"
    problem = source_problem(f"the manifest {uri}", location, config.allowed_sources)
    if problem is not None:
        raise Refused(problem)
    store = await _store_of(data_uri, manifest, _config_for(data_uri, uri, config))
    return Listing(store, manifest.uri, manifest.entries, manifest)


def _data_uri(uri: Uri, manifest: Manifest) -> Uri:
    data = parse_uri(manifest.uri)
    same_bucket = (data.scheme, data.bucket) == (uri.scheme, uri.bucket)
    names_host = data.scheme not in MANIFEST_DATA_SCHEMES or "@" in data.bucket
    if uri.scheme != "file" and names_host and not same_bucket:
        what = f"the manifest {uri} names data that only a local manifest may name"
        remedy = "Store the manifest next to its data, or copy it to this machine first"
        raise Corrupt.of(what, manifest.uri, remedy)
    return data


def _config_for(data: Uri, manifest: Uri, config: StoreConfig) -> StoreConfig:
    """How to reach the data of a manifest: if that is not local, another web server gets no credentials.

    Those of netrc name their hosts.
    """
    same = (data.scheme, data.bucket) == (manifest.scheme, manifest.bucket)
    if same or manifest.scheme == "file" or data.scheme not in WEB_SERVERS:
        return config
    reload = config.reload_credentials
    return msgspec.structs.replace(
        config,
        credentials=without_web_credentials(config.credentials),
        reload_credentials=(lambda: without_web_credentials(reload())) if reload else None,
    )


async def _store_of(uri: Uri, manifest: Manifest, config: StoreConfig) -> Store:
    """The store that a manifest's names are relative to: for a single object its parent."""
    names = [entry.name for entry in manifest.entries[:2]]
    if names == [uri.name]:
        async with _closed_on_failure(uri.parent, config) as parent:
            with suppress(NotFound):
                await parent.stat(uri.name)
                return parent
        await parent.close()
    return open_store(uri, config)


async def list_dataset(store: Store) -> Manifest:
    """All files below the store's URI.

    Raises:
        EmptyDataset: There are none.
        Corrupt: Names that cannot be files below one directory.
    """
    entries = await list_entries(store)
    if not entries:
        raise await empty_dataset(store.uri)
    return freeze(str(store.uri), entries)


def check_frozen(reference: Reference, manifest: Manifest, before: Manifest | None = None) -> None:
    """Compare a listing with a frozen reference.

    With `before`, the manifest that was frozen, the message names the differences.

    Raises:
        Changed: They differ.
    """
    if not reference.frozen or reference.digest == manifest.digest:
        return
    now = f"{manifest.files} files, {format_bytes(manifest.bytes)}, sha256={manifest.digest}"
    measured = f"frozen: {_frozen_totals(reference)}; now: {now}"
    if before is not None and before.digest == reference.digest:
        measured = f"{differences(before.entries, manifest.entries)}; {measured}"
    remedy = "Freeze it again with `podferry dataset freeze`, or restore the objects"
    raise Changed.of(f"the dataset {reference.uri} has changed since it was frozen", measured, remedy)


def _frozen_totals(reference: Reference) -> str:
    has_totals = reference.files is not None and reference.bytes is not None
    totals = f"{reference.files} files, {format_bytes(reference.bytes or 0)}, " if has_totals else ""
    return f"{totals}sha256={reference.digest}"


async def changed_since(manifest: Manifest, config: StoreConfig) -> Changed | None:
    """The error that names what has changed since a manifest, or None if nothing has.

    Raises:
        EmptyDataset and the store's errors: The dataset cannot be listed.
    """
    listing = await open_listing(parse_uri(manifest.uri), config)
    await listing.store.close()
    found = differences(manifest.entries, listing.entries)
    if not found:
        return None
    remedy = "Freeze it again with `podferry dataset freeze --manifest`, or restore the objects"
    return Changed.of(f"the dataset {manifest.uri} no longer matches its manifest", str(found), remedy)

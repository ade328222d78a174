"""Lists a dataset, or says by name why there is none."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from pathlib import Path

import msgspec

from podferry.contract.errors import Changed, EmptyDataset, FerryError, NotFound
from podferry.contract.manifest import Entry, Manifest, freeze
from podferry.contract.quantity import format_bytes
from podferry.contract.reference import Reference
from podferry.contract.uri import Uri
from podferry.storage.open import open_store
from podferry.storage.store import Store, StoreConfig

MOST_NAMED = 3
"""Prefixes that a message names: enough to recognise a slip, few enough to read."""
HINT_SECONDS = 10.0
"""For the search after near prefixes: a flat bucket of millions of objects must not hold the error back."""


async def list_dataset(store: Store) -> Manifest:
    """All files below the store's URI; where the URI is an object itself, that one.

    Raises:
        EmptyDataset: Nothing is there; it names the nearest prefixes that exist.
        Corrupt: Names that cannot be files below one directory.
    """
    entries = [entry async for entry in store.entries()]
    if not entries:
        raise await _empty(store.uri)
    return freeze(str(store.uri), entries)


class Dataset(msgspec.Struct, frozen=True):
    """A dataset that has been listed.

    Attributes:
        store: Opened where the manifest's names are relative to, for one object above it; close it when done.
        manifest: Its files.
    """

    store: Store
    manifest: Manifest


async def open_dataset(uri: Uri, config: StoreConfig) -> Dataset:
    """Open and list a dataset: a prefix, or one object, which becomes a dataset of one file.

    Raises:
        EmptyDataset: Neither; it names the nearest prefixes that exist.
    """
    store = open_store(uri, config)
    try:
        return Dataset(store, await list_dataset(store))
    except EmptyDataset:
        await store.close()
    except BaseException:
        await store.close()
        raise
    return await _single(uri, config)


async def _single(uri: Uri, config: StoreConfig) -> Dataset:
    store = open_store(uri.parent, config)
    try:
        if uri.name:
            entry = await store.stat(uri.name)
            return Dataset(store, freeze(str(uri), [Entry(uri.name, entry.size, entry.tag)]))
    except NotFound:
        pass
    except BaseException:
        await store.close()
        raise
    await store.close()
    raise await _empty(uri, await _hint(uri, config))


async def _empty(uri: Uri, remedy: str = "") -> EmptyDataset:
    """Of local files only is it known whether the directory is there at all."""
    if uri.scheme != "file":
        return EmptyDataset.of("the dataset is empty", f"no object below {uri}", remedy)
    path = Path("/") / uri.key
    if await asyncio.to_thread(path.exists):
        return EmptyDataset.of("the dataset is empty", f"no file below {path}", remedy)
    return EmptyDataset.of(f"the dataset {path} does not exist", remedy=remedy)


async def _hint(uri: Uri, config: StoreConfig) -> str:
    """What to do about an empty dataset; what goes wrong on the way to a hint hides nothing."""
    try:
        async with asyncio.timeout(HINT_SECONDS):
            near = await nearest(uri, config)
    except (FerryError, TimeoutError):
        near = []
        otherwise = "Check the bucket and the path"
    else:
        otherwise = f"{uri.root} holds nothing at all: check the bucket"
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return "Check the path" if uri.scheme == "file" else otherwise


async def nearest(uri: Uri, config: StoreConfig) -> list[str]:
    """The prefixes nearest to `uri` that exist, for messages: siblings of its first part that does not.

    Of local files only directories of like names, since a disk holds much that has nothing to do with it.
    """
    parts = uri.key.split("/")
    for depth in range(len(parts) - 1, -1, -1):
        parent = msgspec.structs.replace(uri, key="/".join(parts[:depth]))
        store = open_store(parent, config)
        try:
            children = await store.children()
        except NotFound:
            continue
        finally:
            await store.close()
        if children:
            return [str(parent / name) for name in _ranked(uri, parts[depth], children)]
    return []


def _ranked(uri: Uri, wanted: str, children: list[str]) -> list[str]:
    if uri.scheme == "file":
        names = [name.rstrip("/") for name in children if name.endswith("/")]
        return get_close_matches(wanted, names, n=MOST_NAMED)
    names = [name.rstrip("/") for name in children]
    return get_close_matches(wanted, names, n=MOST_NAMED, cutoff=0.4) or names[:MOST_NAMED]


def check_frozen(reference: Reference, manifest: Manifest) -> None:
    """Compare what was listed with what a frozen reference promised.

    Raises:
        Changed: They differ.
    """
    if reference.frozen and reference.digest != manifest.digest:
        sized = reference.files is not None and reference.bytes is not None
        counts = f"{reference.files} files, {format_bytes(reference.bytes or 0)}, " if sized else ""
        said = f"{counts}sha256={reference.digest}"
        found = f"{manifest.files} files, {format_bytes(manifest.bytes)}, sha256={manifest.digest}"
        raise Changed.of(
            f"the dataset {reference.uri} is no longer the one that was frozen",
            f"frozen: {said}; now: {found}",
            "Freeze it again with `podferry dataset freeze`, or restore the objects",
        )

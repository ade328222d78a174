"""What to say of a dataset that is empty: the nearest prefixes that exist."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from pathlib import Path

import msgspec

from podferry.contract.errors import EmptyDataset, FerryError, NotFound
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

MAX_NAMES_SHOWN = 3
"""Prefixes that a message names: enough to recognise a slip, few enough to read."""
HINT_SECONDS = 10.0
"""For the search after near prefixes: a flat bucket of millions of objects must not hold the error back."""


async def empty_dataset(uri: Uri, remedy: str = "") -> EmptyDataset:
    """Of local files only is it known whether the directory is there at all."""
    if uri.scheme != "file":
        return EmptyDataset.of("the dataset is empty", f"no object below {uri}", remedy)
    path = Path("/") / uri.key
    if await asyncio.to_thread(path.exists):
        return EmptyDataset.of("the dataset is empty", f"no file below {path}", remedy)
    return EmptyDataset.of(f"the dataset {path} does not exist", remedy=remedy)


async def remedy_for_empty(uri: Uri, config: StoreConfig) -> str:
    """What to do about an empty dataset; what goes wrong on the way to a hint hides nothing."""
    try:
        async with asyncio.timeout(HINT_SECONDS):
            near = await suggested_prefixes(uri, config)
    except (FerryError, TimeoutError):
        near = []
        otherwise = "Check the bucket and the path"
    else:
        otherwise = f"{uri.root} holds nothing at all: check the bucket"
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return "Check the path" if uri.scheme == "file" else otherwise


async def suggested_prefixes(uri: Uri, config: StoreConfig) -> list[str]:
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
        return get_close_matches(wanted, names, n=MAX_NAMES_SHOWN)
    names = [name.rstrip("/") for name in children]
    return get_close_matches(wanted, names, n=MAX_NAMES_SHOWN, cutoff=0.4) or names[:MAX_NAMES_SHOWN]

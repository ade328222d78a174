"""The error for an empty dataset, with suggestions: similar prefixes that exist."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from podferry.contract.errors import EmptyDataset, FerryError, NotFound
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

MAX_NAMES_SHOWN = 3
"""Suggestions in a message: enough to recognize a typo, few enough to read."""
DIRECTORY_SCHEMES = ("file", "ftp", "ftps", "http", "https", "pvc", "sftp", "smb", "ssh", "webdav", "webdavs")
"""Of stores without buckets."""
GLOB = "*"
"""What shells expand, and stores do not."""
HINT_SECONDS = 10.0
"""Timeout of the search for suggestions: a flat bucket of millions of objects must not delay the error."""


async def empty_dataset(uri: Uri, remedy: str = "") -> EmptyDataset:
    """The error for a dataset without files; of a local one it says whether the directory exists."""
    if uri.scheme != "file":
        return EmptyDataset.of("the dataset is empty", f"no object below {uri}", remedy)
    path = Path("/") / uri.key
    if await asyncio.to_thread(path.exists):
        return EmptyDataset.of("the dataset is empty", f"no file below {path}", remedy)
    return EmptyDataset.of(f"the dataset {path} does not exist", remedy=remedy)


async def remedy_for_empty(uri: Uri, config: StoreConfig) -> str:
    """What to do about an empty dataset; errors during the search do not hide the original one."""
    if GLOB in uri.key:
        prefix, pattern = _split_glob(uri)
        return f"A URI has no patterns: write {prefix}, and include the files {pattern}"
    if uri.scheme == "file" and await asyncio.to_thread(Path("/", uri.key).exists):
        return "Put files into it, or check the path"  # it is the one that was meant
    try:
        async with asyncio.timeout(HINT_SECONDS):
            suggestions = await suggested_prefixes(uri, config)
    except (FerryError, TimeoutError):
        suggestions = []
        otherwise = "Check the bucket and the path"
    else:
        otherwise = f"{uri.root} is empty: check the bucket"
    if suggestions:
        return f"Did you mean {' or '.join(suggestions)}?"
    return "Check the path" if uri.scheme in DIRECTORY_SCHEMES else otherwise


async def suggested_prefixes(uri: Uri, config: StoreConfig) -> list[str]:
    """Existing prefixes to suggest for `uri`: the siblings of the first part of its path that does not exist.

    For local files only directories with similar names, because most of a disk is unrelated.
    """
    while uri.name:
        store = open_store(uri.parent, config)
        try:
            children = await store.children()
        except NotFound:
            children = []
        finally:
            await store.close()
        if children:
            return [str(uri.parent / name) for name in _similar(uri, uri.name, children)]
        uri = uri.parent
    return []


def _split_glob(uri: Uri) -> tuple[Uri, str]:
    """The prefix before the first part of the path that is a pattern, and the pattern from there."""
    parts = uri.key.split("/")
    first = next(at for at, part in enumerate(parts) if GLOB in part)
    return msgspec.structs.replace(uri, key="/".join(parts[:first])), "/".join(parts[first:])


def _similar(uri: Uri, missing: str, children: list[str]) -> list[str]:
    """The children like `missing`; not that one itself, which is there and has nothing in it."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a dataset that is not there

    if uri.scheme == "file":
        names = [name[:-1] for name in children if name.endswith("/") and name[:-1] != missing]
        return get_close_matches(missing, names, n=MAX_NAMES_SHOWN)
    names = [name.rstrip("/") for name in children if name.rstrip("/") != missing]
    return get_close_matches(missing, names, n=MAX_NAMES_SHOWN, cutoff=0.4) or names[:MAX_NAMES_SHOWN]

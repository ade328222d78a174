"""Lists large datasets by directory, in parallel: a store lists 1,000 objects per request, one after another.

At 100 ms a request, 100,000 objects take 10 s in sequence, perhaps longer than fetching them. If the first
pages show that directories have enough objects each, directories are listed in parallel instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol, runtime_checkable

from podferry.contract.destination.private_names import is_sync_record
from podferry.contract.manifest import Entry
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.object_names import join
from podferry.storage.store import Store

LONG_LISTING_OBJECTS = 3000
"""A listing is long from here on: three requests in sequence cost less than finding out how to split it."""
MIN_DIRECTORY_OBJECTS = 500
"""Mean objects per directory, of those seen: with fewer, a request per directory costs more."""
CONCURRENCY = 4
"""Requests in flight. At 100 ms each they return 40 pages a second; one core parses 50. A page takes up to
2 MiB of memory; the entries of 100,000 objects take 22."""
MAX_DIRECTORIES = 2048
"""With more directories most are small, no matter what the first ones were like."""
OnEntry = Callable[[Store, Entry], None]
"""Called with each entry when it is listed; perhaps twice, because a listing may start again."""


@runtime_checkable
class ListsByDirectory(Protocol):
    """A store that can list one directory without those below it."""

    async def list_directory(self, prefix: str = "") -> tuple[list[Entry], list[str]]:
        """The objects directly below `prefix`, as in `Store.entries`, and the names of the directories."""


def ignore_entry(store: Store, entry: Entry) -> None:
    """An `OnEntry` that does nothing."""


async def list_entries(store: Store, on_entry: OnEntry = ignore_entry) -> list[Entry]:
    """What `Store.entries` yields without the records of syncs, listed by directory if that is faster."""
    if not isinstance(store, ListsByDirectory):
        return [entry async for entry in _entries(store, on_entry)]
    found, depth = await _first_pages(store, on_entry)
    if not depth:
        return found
    names = {entry.name for entry in found}
    found = await _list_by_directory(store, store, on_entry, depth)
    if sum(entry.name in names for entry in found) == len(names):
        return found
    return [entry async for entry in _entries(store, on_entry)]  # some object is in no listed directory


async def _entries(store: Store, on_entry: OnEntry, prefix: str = "") -> AsyncIterator[Entry]:
    async for entry in store.entries(prefix):
        if not is_sync_record(entry.name):
            on_entry(store, entry)
            yield entry


async def _first_pages(store: Store, on_entry: OnEntry) -> tuple[list[Entry], int]:
    """All entries and 0; or the first ones of a long listing, and the depth to split it at."""
    found: list[Entry] = []
    async for entry in _entries(store, on_entry):
        found.append(entry)
        if len(found) == LONG_LISTING_OBJECTS and (depth := splitting_depth(found)):
            return found, depth
    return found, 0


def splitting_depth(entries: list[Entry]) -> int:
    """The deepest level at which directories still have enough objects each; 0 for none."""
    depth = 0
    while True:
        directories = {"/".join(entry.name.split("/")[: depth + 1]) for entry in entries}
        deeper = all(entry.name.count("/") > depth for entry in entries)
        if not deeper or len(directories) * MIN_DIRECTORY_OBJECTS > len(entries):
            return depth
        depth += 1


async def _list_by_directory(
    store: Store, lister: ListsByDirectory, on_entry: OnEntry, depth: int
) -> list[Entry]:
    """All entries, or none if there are too many directories to list each by itself."""
    found: list[Entry] = []
    directories = [""]

    async def list_one(directory: str) -> None:
        listed, names = await lister.list_directory(directory)
        objects = [entry for entry in listed if not is_sync_record(entry.name)]
        for entry in objects:
            on_entry(store, entry)
        found.extend(objects)
        deeper.extend(join(directory, name) for name in names)

    async def list_all_below(directory: str) -> None:
        found.extend([entry async for entry in _entries(store, on_entry, directory)])

    for _ in range(depth):
        deeper: list[str] = []
        await for_each_limited(directories, list_one, CONCURRENCY)
        directories = deeper
        if len(directories) > MAX_DIRECTORIES:
            return []
        if len(directories) >= CONCURRENCY:
            break
    await for_each_limited(directories, list_all_below, CONCURRENCY)
    return found

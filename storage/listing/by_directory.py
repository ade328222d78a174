"""Long listings, split by directories: a store lists a thousand objects a request, one request after another.

At 100 ms a request, 100,000 objects take 10 s in a row, which may be longer than fetching them. Directories
are listed beside one another instead, where the first pages show that each holds enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Protocol, runtime_checkable

from podferry.contract.manifest import Entry
from podferry.storage.store import Store

LONG_LISTING_OBJECTS = 3000
"""Objects from which a listing is long: three requests in a row cost less than finding a better way."""
MIN_DIRECTORY_OBJECTS = 500
"""Objects that a directory must hold, on the average of those seen: else a request for each costs more."""
CONCURRENCY = 4
"""Requests in flight. At 100 ms each they bring 40 pages a second, and one core reads 50. A page in flight
takes up to 2 MiB of memory; all that is known of 100,000 objects takes 22."""
OnEntry = Callable[[Store, Entry], None]
"""Is told of each entry when it is listed; perhaps twice, since a listing may be begun anew."""
MAX_DIRECTORIES = 2048
"""Directories: where there are more, most are small, whatever the first ones were like."""


@runtime_checkable
class ListsByDirectory(Protocol):
    """A store that lists one level of its directories as completely as all of them."""

    async def list_directory(self, prefix: str = "") -> tuple[list[Entry], list[str]]:
        """The objects directly below `prefix`, as `Store.entries` has them, and the directories' names."""


def ignore_entry(store: Store, entry: Entry) -> None:
    """For who needs no entry before all are listed."""


async def list_entries(store: Store, seen: OnEntry = ignore_entry) -> list[Entry]:
    """What `Store.entries` yields, as quickly as the store gives it."""
    entries = _Entries(store, seen)
    if not isinstance(store, ListsByDirectory):
        return [entry async for entry in entries.below()]
    found, depth = await _first(entries)
    if not depth:
        return found
    names = {entry.name for entry in found}
    found = await _in_parts(entries, store, depth)
    if sum(entry.name in names for entry in found) == len(names):
        return found
    return [entry async for entry in entries.below()]  # something is there that its directory does not show


class _Entries:
    """A store's entries, told while they come."""

    def __init__(self, store: Store, seen: OnEntry) -> None:
        self._store, self._seen = store, seen

    async def below(self, prefix: str = "") -> AsyncIterator[Entry]:
        async for entry in self._store.entries(prefix):
            self._seen(self._store, entry)
            yield entry

    def tell(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._seen(self._store, entry)


async def _first(entries: _Entries) -> tuple[list[Entry], int]:
    """All that is there; or the beginning of a long listing, and to which depth its directories are full."""
    found: list[Entry] = []
    async for entry in entries.below():
        found.append(entry)
        if len(found) == LONG_LISTING_OBJECTS and (depth := splitting_depth(found)):
            return found, depth
    return found, 0


def splitting_depth(entries: list[Entry]) -> int:
    """How many levels of directories there are of which each directory seems to be full; 0 for none."""
    depth = 0
    while True:
        directories = {"/".join(entry.name.split("/")[: depth + 1]) for entry in entries}
        deeper = all(entry.name.count("/") > depth for entry in entries)
        if not deeper or len(directories) * MIN_DIRECTORY_OBJECTS > len(entries):
            return depth
        depth += 1


async def _in_parts(entries: _Entries, lister: ListsByDirectory, depth: int) -> list[Entry]:
    """All entries; none where there are too many directories to list each by itself."""
    found: list[Entry] = []
    directories = [""]

    async def descend(directory: str) -> None:
        objects, below = await lister.list_directory(directory)
        entries.tell(objects)
        found.extend(objects)
        deeper.extend(f"{directory}/{name}" if directory else name for name in below)

    async def rest(directory: str) -> None:
        found.extend([entry async for entry in entries.below(directory)])

    for _ in range(depth):
        deeper: list[str] = []
        await _each(directories, descend)
        directories = deeper
        if len(directories) > MAX_DIRECTORIES:
            return []
        if len(directories) >= CONCURRENCY:
            break
    await _each(directories, rest)
    return found


async def _each(directories: Iterable[str], work: Callable[[str], Awaitable[None]]) -> None:
    """Do it for each, so many at once; the first failure ends all."""
    left = iter(directories)

    async def worker() -> None:
        for directory in left:
            await work(directory)

    workers = [asyncio.ensure_future(worker()) for _ in range(CONCURRENCY)]
    try:
        await asyncio.gather(*workers)
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

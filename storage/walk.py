"""Lists all files below a directory, one directory after another: complete, or an error.

For engines whose servers list a directory at a time. A directory that hangs, resets the connection or may not
be read is an error: a dataset without it would look complete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from podferry.contract.errors import Corrupt, NotFound, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.timeouts_and_limits import MAX_LISTED

MAX_DEPTH = 100
"""Levels of directories. A file server stops at its longest path; a web server may invent pages for ever."""


class Directory(msgspec.Struct, frozen=True):
    """What is directly in a directory. Names are relative to the store.

    Attributes:
        entries: Its files.
        unsized: Names of files whose size and tag the listing does not have.
        directories: Names of the directories in it.
        skipped: Links that may lead to files of it and cannot be followed.
        problem: Why there is no such directory, or empty: nothing is there, or a file is.
    """

    entries: tuple[Entry, ...] = ()
    unsized: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    problem: str = ""


ListDirectory = Callable[[str], Awaitable[Directory]]


class Walk:
    """One listing of a store, with calls that may run in parallel.

    Attributes:
        skipped: All `Directory.skipped`.
    """

    def __init__(
        self,
        uri: Uri,
        list_directory: ListDirectory,
        stat: Callable[[str], Awaitable[Entry | None]],
        parallel: int,
        max_listed: int = MAX_LISTED,
    ) -> None:
        """Prepare a listing.

        Args:
            uri: Of the store, for messages.
            list_directory: What is in a directory.
            stat: The entry of a file whose size is not known, or None if it is a directory.
            parallel: Calls at a time.
            max_listed: Files and directories of a listing that may be real.
        """
        self._uri = uri
        self._list_directory, self._stat = list_directory, stat
        self._parallel, self._max_listed = parallel, max_listed
        self.skipped: list[str] = []
        self._entries: dict[str, Entry] = {}
        self._visited: set[str] = set()

    async def files(self, prefix: str) -> list[Entry]:
        """All files below `prefix`, in any order; none if there is no such directory.

        Raises:
            Corrupt: There is no end to it.
            Unavailable: A directory or file that was listed is not there.
            The store's errors: Something cannot be listed.
        """
        level = await self._visit(await self._list_directory(prefix))
        for _ in range(MAX_DEPTH):
            if not level:
                return list(self._entries.values())
            deepest, level = level[0], await self._level(level)
        raise self._endless(prefix, f"{MAX_DEPTH} levels: {deepest[:100]}…")

    async def _level(self, directories: list[str]) -> list[str]:
        """Visit directories; the names of those directly below them."""
        deeper: list[str] = []

        async def visit(name: str) -> None:
            """Take what is in a directory."""
            try:
                found = await self._list_directory(name)
            except NotFound as error:
                raise self._vanished(name, _measured(error)) from error
            if found.problem:
                raise self._vanished(name, found.problem)
            deeper.extend(await self._visit(found))
            if len(self._entries) + len(self._visited) > self._max_listed:
                raise self._endless(name, f"over {self._max_listed:,} files and directories")

        await for_each_limited(directories, visit, self._parallel)
        return deeper

    async def _visit(self, directory: Directory) -> list[str]:
        """Take a directory's files; the names of the directories in it that are new."""
        directories = list(directory.directories)

        async def add(name: str) -> None:
            """Take a name as a file or as a directory."""
            try:
                found = await self._stat(name)
            except NotFound as error:
                raise self._vanished(name, _measured(error)) from error
            if found is None:
                directories.append(name)
            else:
                self._entries[name] = found

        self.skipped += directory.skipped
        self._entries.update((entry.name, entry) for entry in directory.entries)
        linked = set(directories)
        unknown = [name for name in directory.unsized if name not in self._entries and name not in linked]
        await for_each_limited(unknown, add, self._parallel)
        new = [name for name in dict.fromkeys(directories) if name not in self._visited]
        self._visited.update(new)
        return new

    def _vanished(self, name: str, measured: str) -> Unavailable:
        what = f"{self._uri / name} is listed and cannot be opened"
        remedy = "Give permission to read it; if a program removes what is there, list it when that has ended"
        return Unavailable.of(what, measured, remedy)

    def _endless(self, name: str, measured: str) -> Corrupt:
        what = f"the listing of {self._uri / name} has no end"
        return Corrupt.of(what, measured, "Name a directory further down")


def _measured(error: NotFound) -> str:
    return "; ".join(problem.measured for problem in error.problems)


async def children_of(list_directory: ListDirectory, directory: str, parallel: int = 1) -> list[str]:
    """Sorted names directly in a directory, those of directories with a slash; see `Store.children`.

    Directories without files are left out, as object stores have none; `parallel` are looked into at a time.
    """
    found = await list_directory(directory)
    below = directory and f"{directory}/"
    names = {name.removeprefix(below) for name in (*(entry.name for entry in found.entries), *found.unsized)}

    async def add(name: str) -> None:
        """Take a directory if there is a file below it."""
        if await _has_files(list_directory, name):
            names.add(f"{name.removeprefix(below)}/")

    await for_each_limited(found.directories, add, parallel)
    return sorted(names)


async def _has_files(list_directory: ListDirectory, directory: str, depth: int = 0) -> bool:
    found = await list_directory(directory)
    if found.entries or found.unsized:
        return True
    if depth == MAX_DEPTH:
        return False
    for name in found.directories:
        if await _has_files(list_directory, name, depth + 1):
            return True
    return False

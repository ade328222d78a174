"""At which names files and directories were seen while they were written there: a rename to these is none.

A rename sets a change time without a write; so do `chmod`, `chgrp` and a hard link. A file whose last change
was a write, when it was seen at its name, was written in place, whatever changes its times later.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

from podferry.sidecar.runtime.file_identity import FileIdentity

Place = tuple[int, str, int]
"""An inode, a name relative to the checkpoint directory, and the newest modification time seen there."""


class WrittenPlaces:
    """Tracks where files and directories were written; fed by scans."""

    def __init__(self) -> None:
        self._newest: dict[tuple[int, str], int] = {}
        self._folders: dict[str, int] = {}

    def load(self, places: Iterable[Place]) -> None:
        """Take over what earlier workers have seen."""
        self._newest |= {(inode, name): mtime_ns for inode, name, mtime_ns in places}

    def dump(self, without: Collection[int]) -> list[Place]:
        """What a later worker must know, but for some inodes."""
        return [(*place, newest) for place, newest in sorted(self._newest.items()) if place[0] not in without]

    def update(
        self, found: Mapping[str, os.stat_result], moved: Collection[str], inodes: Collection[int]
    ) -> None:
        """Record a scan.

        Args:
            found: What is at the names that have changed, and at the names of all directories.
            moved: The names that were moved in.
            inodes: Those of all files: the file system gives the numbers of others to new files.
        """
        self._folders = {name: stat.st_ino for name, stat in found.items() if S_ISDIR(stat.st_mode)}
        there = {*inodes, *self._folders.values()}
        self._newest = {place: newest for place, newest in self._newest.items() if place[0] in there}
        for name, stat in found.items():
            if name in moved:
                self._newest.pop((stat.st_ino, name), None)
            elif stat.st_ctime_ns <= stat.st_mtime_ns:
                self._newest[stat.st_ino, name] = stat.st_mtime_ns

    def has(self, directory: str) -> bool:
        """Whether a directory was written to at this name."""
        return (self._folders.get(directory), directory) in self._newest

    def former_names(self, inodes: Mapping[str, int]) -> dict[str, str]:
        """The other name at which each of some files was written, for those that have one."""
        names = {inode: name for name, inode in inodes.items()}
        at = ((names[inode], name) for inode, name in self._newest if inode in names)
        return {name: former for name, former in at if former != name}

    def has_file(self, name: str, identity: FileIdentity) -> bool:
        """Whether a file was written at this name, and its times were not set to older ones since.

        A copy gets the times of its original once it is complete.
        """
        newest = self._newest.get((identity.inode, name))
        return newest is not None and newest <= identity.mtime_ns


def look(root: Path, names: Iterable[str]) -> dict[str, os.stat_result]:
    """What is at some names below a directory, without those that are gone."""
    found = {}
    for name in names:
        with suppress(OSError):
            found[name] = (root / name).stat(follow_symlinks=False)
    return found

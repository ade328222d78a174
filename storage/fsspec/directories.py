"""What is directly in a directory of an fsspec file system that is no object store. Calls block."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podferry.contract.errors import Unavailable
from podferry.contract.manifest import Entry
from podferry.storage.fsspec.reads import FsspecReads, content_tag
from podferry.storage.object_names import is_temporary, join
from podferry.storage.walk import Directory

Info = Mapping[str, Any]


class FsspecDirectories:
    """Names are relative to the store. Raises what the file system does, but not that nothing is there."""

    def __init__(self, reads: FsspecReads) -> None:
        self._reads = reads

    def read(self, directory: str) -> Directory:
        """What is directly in a directory."""
        try:
            listed = self._listed(directory)
            members = list(self._members(directory, listed))
        except (FileNotFoundError, NotADirectoryError) as error:
            return Directory(problem=error.strerror or str(error) or "there is no such directory")
        entries, unsized, directories = list[Entry](), list[str](), list[str]()
        for name, info in members:
            if info["type"] == "directory":
                directories.append(name)
            elif info.get("size") is None:
                unsized.append(name)
            else:
                entries.append(Entry(name, int(info["size"]), content_tag(info)))
        return Directory(tuple(entries), tuple(unsized), tuple(sorted(directories)))

    def _members(self, directory: str, listed: Sequence[Info]) -> Iterator[tuple[str, Info]]:
        path = self._reads.path(directory)
        for info in listed:
            name = join(directory, self._reads.relative(info["name"], path))
            if name == directory or is_temporary(name):
                continue
            yield name, info if info["type"] in {"file", "directory"} else self._target(name, info["name"])

    def _listed(self, directory: str) -> Sequence[Info]:
        path = self._reads.path(directory)
        file_system = self._reads.file_system
        try:
            listed: Sequence[Info] = file_system.ls(path, detail=True)
        except Exception as error:  # what a file system raises for a file differs
            if file_system.isfile(path):
                raise NotADirectoryError(errno.ENOTDIR, "a file", path) from error
            raise
        return listed

    def _target(self, name: str, link: str) -> Info:
        """What a link leads to."""
        file_system = self._reads.file_system
        try:
            found: Info = file_system.info(link)
        except FileNotFoundError as error:
            what, remedy = f"{self._reads.uri / name} is a dangling link", "Mount the volume of its target"
            raise Unavailable.of(what, "", f"{remedy}, or remove it") from error
        return found

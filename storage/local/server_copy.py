"""Copies within a directory: the kernel copies the bytes, or shares their blocks if the file system can."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from podferry.storage.errors.translate import StoreLocation
from podferry.storage.local.files import publish_file
from podferry.storage.object_names import checked_name
from podferry.storage.same_names import Writing
from podferry.storage.server_copy import StoredObject, checked_copy
from podferry.storage.timeouts_and_limits import MIB

COPY_BYTES = 1 << 30
"""Bytes that one system call copies at most; Linux itself stops at 2 GiB."""

BlockingCall = Callable[[str, Callable[[], Any], str], Awaitable[Any]]
"""Runs blocking work for a name in a thread and translates its errors; the last argument is the operation."""


class LocalServerCopy:
    """Copies files of one directory. They are no hard links: someone may change one of them in place."""

    max_bytes = 1 << 62

    def __init__(self, call: BlockingCall, location: StoreLocation, root: Path, writing: Writing) -> None:
        self._call, self._location, self._root, self._writing = call, location, root, writing

    async def copy(self, source: str, target: str) -> StoredObject:
        """See `ServerCopy.copy`."""
        checked_name(source)
        checked_name(target)
        async with self._writing(target):
            made: StoredObject = await self._call(source, lambda: self._copy(source, target), "copied")
        return made

    def _copy(self, source: str, target: str) -> StoredObject:
        with (self._root / source).open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            publish_file(self._location, self._root, target, lambda to: copy_bytes(file.fileno(), to))
        found = (self._root / target).stat().st_size
        return checked_copy(self._location.uri / target, StoredObject(size), StoredObject(found))


def copy_bytes(source: int, target: int) -> None:
    """Copy an open file to another one; source: copy_file_range(2)."""
    try:
        while os.copy_file_range(source, target, COPY_BYTES):
            pass
    except OSError:  # two file systems, or one that has no such call
        from shutil import copyfileobj  # noqa: PLC0415 - it imports codecs

        os.lseek(source, 0, os.SEEK_SET)
        os.ftruncate(target, 0)
        os.lseek(target, 0, os.SEEK_SET)
        with open(source, "rb", closefd=False) as reader, open(target, "wb", closefd=False) as writer:
            copyfileobj(reader, writer, MIB)

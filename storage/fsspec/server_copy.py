"""Copies within a bucket of Google Cloud Storage, through gcsfs."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from podferry.storage.checksum.checksums import Checksum, ChecksumKind
from podferry.storage.fsspec.options import GOOGLE_SCHEMES
from podferry.storage.fsspec.reads import FsspecReads, Info
from podferry.storage.object_names import checked_name
from podferry.storage.server_copy import StoredObject, checked_copy

SERVER_COPY_SCHEMES = frozenset(GOOGLE_SCHEMES)
"""Here the service copies; most other file systems of fsspec read and write the bytes."""
CHECKSUM_FIELDS = (("crc32c", ChecksumKind.CRC32C), ("md5Hash", ChecksumKind.MD5))
"""Fields of an object's resource, in base64: "Objects", JSON API of Cloud Storage."""

BlockingCall = Callable[[str, Callable[[], Any], float | None], Awaitable[Any]]
"""Runs blocking work for a name in a thread and translates its errors; the last argument is the timeout."""


class FsspecServerCopy:
    """Copies objects of one bucket; the service has no limit on their size."""

    max_bytes = 1 << 62

    def __init__(self, call: BlockingCall, reads: FsspecReads, seconds: float) -> None:
        self._call, self._reads, self._seconds = call, reads, seconds

    async def copy(self, source: str, target: str) -> StoredObject:
        """See `ServerCopy.copy`."""
        checked_name(source)
        checked_name(target)
        made: StoredObject = await self._call(source, lambda: self._copy(source, target), self._seconds)
        return made

    def _copy(self, source: str, target: str) -> StoredObject:
        before = self._describe(source)
        self._reads.file_system.cp_file(self._reads.path(source), self._reads.path(target))
        return checked_copy(self._reads.uri / target, before, self._describe(target))

    def _describe(self, name: str) -> StoredObject:
        info = self._reads.file_system.info(self._reads.path(name))
        if info.get("type") == "directory":
            raise FileNotFoundError(name)
        return StoredObject(int(info["size"]), _checksum(info))


def _checksum(info: Info) -> Checksum | None:
    found = ((kind, info[field]) for field, kind in CHECKSUM_FIELDS if info.get(field))
    kind, value = next(found, (None, ""))
    return Checksum(kind, base64.b64decode(value)) if kind is not None else None

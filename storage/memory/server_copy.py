"""Copies within a memory store, with its faults."""

from __future__ import annotations

from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import ChecksumKind, checksum_of
from podferry.storage.errors.translate import StoreLocation, store_error
from podferry.storage.memory.faults import Content
from podferry.storage.object_names import checked_name, join
from podferry.storage.server_copy import StoredObject, checked_copy


class MemoryServerCopy:
    """Copies of any size. A fault `copy` strikes by the target's name."""

    max_bytes = 1 << 62

    def __init__(self, uri: Uri, content: Content) -> None:
        self._uri, self._content = uri, content

    async def copy(self, source: str, target: str) -> StoredObject:
        """See `ServerCopy.copy`."""
        checked_name(source)
        fault = await self._content.meet("copy", checked_name(target))
        try:
            data = self._content.objects[join(self._uri.key, source)]
        except KeyError:
            raise store_error("missing", StoreLocation(self._uri), source) from None
        arrived = fault.damaged(data)
        self._content.objects[join(self._uri.key, target)] = arrived
        fault.raise_after()
        return checked_copy(self._uri / target, _stored(data), _stored(arrived))


def _stored(data: bytes) -> StoredObject:
    return StoredObject(len(data), checksum_of(ChecksumKind.CRC64NVME, data))

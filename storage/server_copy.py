"""The interface for copies within a store: the bytes do not pass through this process.

Not every store has it: if `Store.server_copy` is None, an object is read and written again.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from podferry.contract.errors import Corrupt
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import Checksum


class StoredObject(msgspec.Struct, frozen=True):
    """What a store says about the content of an object: bytes, and a checksum of all of them or None."""

    size: int
    checksum: Checksum | None = None


class ServerCopy(Protocol):
    """Copies objects of one store.

    Attributes:
        max_bytes: Bytes of the largest object that can be copied.
    """

    max_bytes: int

    async def copy(self, source: str, target: str) -> StoredObject:
        """Copy an object to another name, where it replaces an existing object; returns what is there now.

        The copy is complete when the call returns: it has the source's size, and its checksum if the store
        states one of both. After a failure there may be an object under the target's name.

        Raises:
            NotFound: There is no source.
            Corrupt: The copy differs from the source.
        """


def checked_copy(uri: Uri, source: StoredObject, target: StoredObject) -> StoredObject:
    """The copy at `uri`, compared with its source.

    Raises:
        Corrupt: They have different sizes, or different checksums of the same kind.
    """
    if target.size != source.size:
        measured = f"{target.size} bytes, the source has {source.size}"
        raise Corrupt.of(f"{uri} is not a copy of its source", measured, "Copy it again")
    first, second = source.checksum, target.checksum
    if first is not None and second is not None and first.kind is second.kind and first != second:
        measured = f"{first.kind} {second.value.hex()}, the source has {first.value.hex()}"
        raise Corrupt.of(f"{uri} is not a copy of its source", measured, "Copy it again")
    return target

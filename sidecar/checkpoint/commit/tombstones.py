"""Records of removals in progress."""

from __future__ import annotations

from podferry.contract.errors import NotFound
from podferry.contract.tombstones import (
    TOMBSTONES,
    Tombstone,
    decode_tombstone,
)
from podferry.storage.store import Store


async def read_tombstones(store: Store, lineage: str) -> list[Tombstone]:
    """The records of all removals under way, or killed.

    Raises:
        Corrupt, FormatTooNew: One cannot be read.
    """
    found = []
    for name in await store.children(f"{lineage}/{TOMBSTONES}"):
        path = f"{lineage}/{TOMBSTONES}/{name}"
        try:
            found.append(decode_tombstone(bytes(await store.read(path)), str(store.uri / path)))
        except NotFound:
            continue  # that removal has just ended
    return found


async def names_being_removed(store: Store, lineage: str) -> set[str]:
    """Names that nobody may write under now: they may be deleted at any moment.

    To be asked after the commits have been looked at, and before the first byte is sent.

    Raises:
        Corrupt, FormatTooNew: A record cannot be read.
    """
    return {
        name
        for record in await read_tombstones(store, lineage)
        for name in {**record.planned, **record.settled}
    }

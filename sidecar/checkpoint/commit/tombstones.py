"""Records of removals in progress."""

from __future__ import annotations

from podferry.contract.errors import NotFound
from podferry.contract.tombstones import (
    TOMBSTONES,
    Tombstone,
    decode_tombstone,
)
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore


async def read_tombstones(store: LineageStore) -> list[Tombstone]:
    """The records of all removals under way, or killed.

    Raises:
        Corrupt, FormatTooNew: One cannot be read.
    """
    found = []
    for name in await store.children(TOMBSTONES):
        try:
            found.append(await store.load(f"{TOMBSTONES}/{name}", decode_tombstone))
        except NotFound:
            continue  # that removal has just ended
    return found


async def names_being_removed(store: LineageStore) -> set[str]:
    """Names that nobody may write under now: they may be deleted at any moment.

    To be asked after the commits have been looked at, and before the first byte is sent.

    Raises:
        Corrupt, FormatTooNew: A record cannot be read.
    """
    return {name for record in await read_tombstones(store) for name in {**record.planned, **record.settled}}

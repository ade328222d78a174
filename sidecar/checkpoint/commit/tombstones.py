"""Reads the tombstones of a lineage."""

from __future__ import annotations

from podferry.contract.errors import NotFound
from podferry.contract.tombstones import TOMBSTONES, Tombstone, decode_tombstone
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore


async def read_tombstones(store: LineageStore) -> list[Tombstone]:
    """The tombstones of all removals that are running or were killed.

    Raises:
        Corrupt, FormatTooNew: One cannot be read.
    """
    found = []
    for name in await store.children(TOMBSTONES):
        try:
            found.append(await store.load(f"{TOMBSTONES}/{name}", decode_tombstone))
        except NotFound:
            continue  # that removal has just finished
    return found


async def names_being_removed(store: LineageStore) -> set[str]:
    """Names that must not be written to: their objects may be deleted at any moment.

    Call this after reading the commits and before uploading the first byte.

    Raises:
        Corrupt, FormatTooNew: A tombstone cannot be read.
    """
    tombstones = await read_tombstones(store)
    return {name for tombstone in tombstones for name in {**tombstone.planned, **tombstone.settled}}

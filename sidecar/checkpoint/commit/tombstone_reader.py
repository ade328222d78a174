"""Reads the tombstones of a lineage."""

from __future__ import annotations

from podferry.contract.destination.tombstones import TOMBSTONES, Tombstone, decode_tombstone
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore


async def read_tombstones(store: LineageStore) -> list[Tombstone]:
    """The tombstones of all removals that run or were killed; raises `Corrupt` or `FormatTooNew`."""
    names = await store.children(TOMBSTONES)
    found = [await store.find(f"{TOMBSTONES}/{name}", decode_tombstone) for name in names]
    return [tombstone for tombstone in found if tombstone is not None]  # None: it has just finished


async def names_being_removed(store: LineageStore) -> set[str]:
    """Names that must not be written to: their objects may be deleted at any moment.

    Call this after reading the commits and before uploading the first byte. Raises as `read_tombstones` does.
    """
    tombstones = await read_tombstones(store)
    return {name for tombstone in tombstones for name in {**tombstone.planned, **tombstone.settled}}

"""Stores on a share of the Samba of the tests."""

from __future__ import annotations

from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.samba import KEYS, Samba

QUICK = Limits(connect_seconds=2, stall_seconds=10, retries=1, retry_seconds=2, part_bytes=5 << 20)
CONFIG = StoreConfig(credentials=KEYS)


def opened(server: Samba, path: str = "", share: str = "share", keys: dict[str, str] | None = None):
    return open_store(
        Uri("smb", server.address, f"{share}/{path}".rstrip("/")),
        StoreConfig(credentials=KEYS if keys is None else keys),
        QUICK,
    )


async def listed(store) -> dict[str, int]:
    try:
        return {entry.name: entry.size async for entry in store.entries()}
    finally:
        await store.close()

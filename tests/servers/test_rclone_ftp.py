"""FTP at `rclone serve ftp`, which opens a file only when its bytes arrive: an upload fails at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podferry.contract.errors import AccessDenied, InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.conditional_create import create_checked
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.rclone import rclone

CONFIG = StoreConfig(credentials={"FTP_USERNAME": "user", "FTP_PASSWORD": "password"})
LIMITS = Limits(retries=2, retry_seconds=20, stall_seconds=2)
LARGE = bytes(20 << 20)


@asynccontextmanager
async def opened(folder: Path, *options: str) -> AsyncIterator[Store]:
    for name in ("files/there", "own"):
        (folder / name).mkdir(parents=True)
    login = "--user", "user", "--pass", "password"
    with rclone(folder / "files", "ftp", folder / "own/log", *login, *options) as address:
        store = open_store(parse_uri(f"ftp://{address}/"), CONFIG, LIMITS)
        try:
            yield store
        finally:
            await store.close()


async def test_missing_directories_are_created(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        assert await create_checked(LineageStore(store, "run"), "agents/1.json", b"1")
        await store.write("new/deeper/large", LARGE)
        await store.write("new/deeper/a", b"1")
        await store.write("there/a", b"1")
        sizes = {entry.name: entry.size async for entry in store.entries()}
    assert sizes == {"new/deeper/a": 1, "new/deeper/large": len(LARGE), "run/agents/1.json": 1, "there/a": 1}


@pytest.mark.parametrize("name", ["a", "there/a", "new/deeper/a"])
@pytest.mark.parametrize("body", [b"1", LARGE])
async def test_a_server_that_is_read_only_denies(tmp_path: Path, name: str, body: bytes) -> None:
    async with opened(tmp_path, "--read-only") as store:
        with pytest.raises(AccessDenied, match=rf"denies access to .*/{name} \(550 .*Read only file system"):
            await store.write(name, body)


async def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.write("a", b"1")
        with pytest.raises(InvalidSpec, match=r"does not accept the name .*/a/b"):
            await store.write("a/b", b"1")

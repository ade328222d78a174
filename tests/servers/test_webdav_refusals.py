"""WebDAV servers that cannot or may not write: what podferry makes of their responses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from podferry.contract.errors import AccessDenied, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import Limits
from tests.support.webdav_servers import (
    KEYS,
    SERVERS,
    on_read_only_disk,
    on_small_disk,
    rclone_webdav,
)

LIMITS = Limits(part_bytes=1 << 20)
LARGE = b"x" * (4 << 20)
MODES = [WriteMode.OVERWRITE, WriteMode.CREATE]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """What is served, and the server's own."""
    files, own = tmp_path / "files", tmp_path / "own"
    (files / "there").mkdir(parents=True)
    own.mkdir()
    return files, own


@asynccontextmanager
async def opened(server: AbstractContextManager[str], path: str = "") -> AsyncIterator[Store]:
    with server as address:
        store = open_store(Uri("webdav", address, path), StoreConfig(credentials=KEYS), LIMITS)
        try:
            yield store
        finally:
            await store.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SERVERS)
async def test_a_full_disk_is_temporary(folders: tuple[Path, Path], name: str, mode: WriteMode) -> None:
    async with opened(SERVERS[name](*folders, prefix=on_small_disk(folders[0], "6m")), "new") as store:
        await store.write("d/a", LARGE)
        pieces = [LARGE[: 1 << 20]] * 4
        for body in (LARGE, iter(pieces)):
            with pytest.raises(Unavailable, match=r"webdav://\S+/new/d .*HTTP \d+ to PUT.*[Ff]ree space"):
                await store.write("d/b", body, mode)
        await store.delete(["d/a"])
        await store.write("d/b", LARGE, mode)
        assert [entry.name async for entry in store.entries()] == ["d/b"]


@pytest.mark.parametrize("name", SERVERS)
async def test_so_is_one_where_nothing_fits(folders: tuple[Path, Path], name: str) -> None:
    """Before its first commit a store tries out what the server can do, with small files."""
    with SERVERS[name](*folders, prefix=on_small_disk(folders[0], "4m")) as address:
        async with opened(nullcontext(address)) as store:
            await store.write("a", LARGE)
        async with opened(nullcontext(address)) as store:
            with pytest.raises(Unavailable, match=r"HTTP \d+ to PUT, 8 bytes.*Free space"):
                await store.write("b", b"1", WriteMode.CREATE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a", r"files to be created in webdav://127\.\S+ \(HTTP 404 to PUT"),
        ("there/a", r"files to be created in webdav://\S+/there \(HTTP 404 to PUT"),
        ("d/a", r"directories to be created in webdav://\S+:\d+/ \(HTTP 405 to MKCOL d/"),
        ("there/d/e/a", r"directories to be created in webdav://\S+/there \(HTTP 405 to MKCOL there/d/"),
    ],
)
async def test_a_read_only_server_is_named(
    folders: tuple[Path, Path], name: str, message: str, mode: WriteMode
) -> None:
    async with opened(rclone_webdav(*folders, "--read-only")) as store:
        with pytest.raises(AccessDenied, match=f"does not allow {message}"):
            await store.write(name, b"1", mode)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("there/a", r"files to be created in webdav://\S+/there \(HTTP 405 to PUT"),
        ("d/e/a", r"directories to be created in webdav://\S+:\d+/ \(HTTP 405 to MKCOL d/"),
    ],
)
async def test_so_is_a_read_only_disk(folders: tuple[Path, Path], name: str, message: str) -> None:
    server = rclone_webdav(*folders, prefix=on_read_only_disk(folders[0]))
    async with opened(server) as store:
        with pytest.raises(AccessDenied, match=f"does not allow {message}"):
            await store.write(name, b"1")

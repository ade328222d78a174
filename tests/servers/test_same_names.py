"""Names that rclone's servers of FTP and SFTP take for one; WebDAV's: `test_webdav.py`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from unicodedata import normalize

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.cluster.process import wait_until
from tests.support.juicefs import FUSE, OWN_MOUNTS
from tests.support.rclone import PROGRAM, rclone
from tests.support.real_servers import free_port, running

USER, PASSWORD = "user", "password"
KEYS = {
    "ftp": {"FTP_USERNAME": USER, "FTP_PASSWORD": PASSWORD},
    "sftp": {"SFTP_USERNAME": USER, "SFTP_PASSWORD": PASSWORD, "SFTP_INSECURE_IGNORE_HOST_KEY": "true"},
}
COMPOSED, DECOMPOSED = (normalize(form, "Ä.bin") for form in ("NFC", "NFD"))


@asynccontextmanager
async def opened(kind: str, folder: Path, *options: str) -> AsyncIterator[Store]:
    """A store at rclone; its server of FTP stores nothing in a directory that is missing."""
    (folder / "files/x/Dir").mkdir(parents=True)
    (folder / "own").mkdir()
    login = ["--user", USER, "--pass", PASSWORD]
    with rclone(folder / "files", kind, folder / "own/log", *login, *options) as address:
        store = open_store(Uri(kind, address, "x"), StoreConfig(credentials=KEYS[kind]), Limits())
        try:
            yield store
        finally:
            await store.close()


async def content(store: Store) -> dict[str, bytes]:
    return {entry.name: bytes(await store.read(entry.name)) async for entry in store.entries()}


@pytest.mark.parametrize("kind", KEYS)
async def test_names_that_differ_only_in_case(tmp_path: Path, kind: str) -> None:
    async with opened(kind, tmp_path, "--vfs-case-insensitive") as store:
        for name in ("Model.pt", "Dir/a"):
            await store.write(name, b"1")
        for name, other in (("model.pt", "Model.pt"), ("dir/b", "Dir"), ("DIR/a", "Dir")):
            with pytest.raises(InvalidSpec, match=rf"{name} .* only in case .*\({other}\)"):
                await store.write(name, b"2")
        assert await content(store) == {"Model.pt": b"1", "Dir/a": b"1"}
        await store.write("Model.pt", b"3")
        assert bytes(await store.read("Model.pt")) == b"3"


@pytest.mark.parametrize(("first", "second"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
@pytest.mark.parametrize("kind", KEYS)
async def test_names_that_differ_only_in_unicode_form(
    tmp_path: Path, kind: str, first: str, second: str
) -> None:
    async with opened(kind, tmp_path) as store:
        await store.write(first, b"1")
        with pytest.raises(InvalidSpec, match="only in Unicode form"):
            await store.write(second, b"2")
        assert await content(store) == {first: b"1"}
        await store.write(first, b"3")
        assert await content(store) == {first: b"3"}


@pytest.mark.parametrize("kind", KEYS)
async def test_a_server_that_distinguishes_case_has_both(tmp_path: Path, kind: str) -> None:
    async with opened(kind, tmp_path) as store:
        for name in ("Model.pt", "model.pt", "Dir/a"):
            await store.write(name, name.encode())
        assert await content(store) == {name: name.encode() for name in ("Model.pt", "model.pt", "Dir/a")}


@pytest.mark.parametrize("is_claim", [False, True])
async def test_a_mount_that_does_not_distinguish_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_claim: bool
) -> None:
    with mounted(tmp_path, "--vfs-case-insensitive", "--vfs-cache-mode", "writes") as mount:
        monkeypatch.setattr("podferry.storage.local.store.CLAIMS", mount.parent)
        store = open_store(Uri("pvc", mount.name, "x") if is_claim else parse_uri(f"{mount}/x"))
        for name in ("Model.pt", "Dir/a"):
            await store.write(name, b"1")
        for name, other in (("model.pt", "Model.pt"), ("dir/b", "Dir")):
            with pytest.raises(InvalidSpec, match=rf"{name} .* only in case .*\({other}\)"):
                await store.write(name, b"2")
        await store.write("Model.pt", b"3")
        assert await content(store) == {"Model.pt": b"3", "Dir/a": b"1"}


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A folder that rclone mounts, as this process reaches it."""
    if os.geteuid() != 0 or not FUSE.exists():
        raise RuntimeError(f"a mount needs root and {FUSE}: load the kernel's module fuse")
    point, log = folder / "mount", folder / "log"
    for each in (folder / "files", point):
        each.mkdir()
    port = free_port()
    own = ["--config", str(folder / "none"), "--cache-dir", str(folder / "cache")]
    control = ["--rc", "--rc-no-auth", "--rc-addr", f"127.0.0.1:{port}"]
    command = [
        *OWN_MOUNTS,
        str(PROGRAM),
        "mount",
        str(folder / "files"),
        str(point),
        *own,
        *control,
        *options,
    ]
    with running(command, port, log) as process:
        reached = Path(f"/proc/{process.pid}/root{point}")
        wait_until(f"rclone to mount\n{log}", reached.is_mount, 60)
        yield reached

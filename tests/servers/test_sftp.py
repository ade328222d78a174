"""SFTP at OpenSSH's server: what fails and how, lost connections, races, odd names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib import import_module  # what only these tests need is not installed for the others
from pathlib import Path
from typing import Any

import pytest

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    Changed,
    FerryError,
    NotFound,
    Unavailable,
)
from podferry.contract.uri import parse_uri
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import Store, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import Limits
from tests.support.client_connections import client_connections
from tests.support.patience import PATIENCE
from tests.support.relay import Relay, relaying
from tests.support.sftp_site import SftpSite, names

MIB = 1 << 20


@pytest.fixture
def site(sftp: Any, sftp_files: Path) -> SftpSite:
    return SftpSite(sftp, sftp_files)


# What may be read.


async def test_who_may_read_but_not_list_is_told_so(site: SftpSite) -> None:
    (site.folder / "closed").mkdir()
    (site.folder / "closed/a").write_bytes(b"12345")
    (site.folder / "closed").chmod(0o711)
    async with site.opened() as store:
        assert bytes(await store.read("closed/a")) == b"12345"
        with pytest.raises(AccessDenied, match=r"denies access to .*/closed"):
            await names(store)
    with pytest.raises(AccessDenied, match=r"denies access to .*/closed"):
        await open_dataset(store.uri, StoreConfig(credentials=site.server.credentials))


async def test_a_file_that_may_not_be_read_is_named(site: SftpSite) -> None:
    (site.folder / "a").write_bytes(b"12345")
    (site.folder / "a").chmod(0o600)  # root's
    async with site.opened() as store:
        with pytest.raises(AccessDenied, match=r"denies access to .*/a"):
            await store.read("a")


async def test_where_nothing_may_be_written_is_named(site: SftpSite) -> None:
    (site.folder / "closed").mkdir(mode=0o755)  # root's
    async with site.opened() as store:
        for name in ("closed/a", "closed/deeper/a"):
            with pytest.raises(FerryError, match=f"denies access to .*/{name}"):
                await store.write(name, b"x")


async def test_a_missing_path_is_empty_and_suggests_others(site: SftpSite) -> None:
    site.write_one()
    uri = parse_uri(f"sftp://{site.server.address}/{site.path}s")
    with pytest.raises(NotFound, match=f"the dataset is empty.*/{site.folder.name}"):
        await open_dataset(uri, StoreConfig(credentials=site.server.credentials))


async def test_a_full_disk_is_named(site: SftpSite) -> None:
    full = import_module("tests.support.openssh").FULL.strip("/")
    async with site.opened(path=f"{full}/{site.folder.name}") as store:
        await store.write("fits", b"x" * 1000)
        with pytest.raises(Unavailable, match=r"no space left to write .*/large.*0 blocks free"):
            await store.write("large", iter([b"x" * MIB]))
        assert await names(store) == ["fits"]


async def test_a_path_below_the_home_directory(site: SftpSite) -> None:
    site.write_one()
    async with site.opened(path=f"~/files/{site.folder.name}") as store:  # the home directory is /srv
        assert await names(store) == ["a"]
        await store.write("new/b", b"x")
        assert await names(store) == ["a", "new/b"]


async def test_a_file_that_changes_while_it_is_read_is_refused(site: SftpSite) -> None:
    site.write_one()
    async with site.opened() as store:
        entry = await store.stat("a")
        os.utime(site.folder / "a", (1, 1))
        with pytest.raises(Changed):
            await store.read("a", 0, entry.size, entry.tag, entry.size)


async def test_names_as_a_file_system_has_them(site: SftpSite) -> None:
    odd = ["x" * 255, "case", "Case", "back\\slash", "new%20name", "#?&", "~"]
    for name in odd:
        (site.folder / name).write_bytes(name.encode())
    async with site.opened() as store:
        assert await names(store) == sorted(odd)
        for name in odd:
            assert bytes(await store.read(name)) == name.encode()


async def test_a_name_that_is_not_utf_8_is_named(site: SftpSite) -> None:
    (Path(os.fsencode(site.folder).decode()) / os.fsdecode(b"latin-\xe9")).write_bytes(b"x")
    uri = parse_uri(f"sftp://{site.server.address}/{site.path}")
    with pytest.raises(FerryError, match=r"not UTF-8.*latin-"):
        await open_dataset(uri, StoreConfig(credentials=site.server.credentials))


async def test_what_is_no_file_is_left_out(site: SftpSite) -> None:
    site.write_one()
    os.mkfifo(site.folder / "pipe")
    async with site.opened() as store:
        assert await names(store) == ["a"]


# Connections.


async def test_of_eight_writers_one_creates(site: SftpSite) -> None:
    stores = [site.store() for _ in range(8)]
    try:
        for number in range(20):
            name, bodies = f"deep/{number}", [bytes([65 + i]) * (i + 1) for i in range(8)]
            writes = (
                store.write(name, body, WriteMode.CREATE) for store, body in zip(stores, bodies, strict=True)
            )
            results = await asyncio.gather(*writes, return_exceptions=True)
            assert [type(result) for result in results if result is not None] == [AlreadyExists] * 7
            assert bytes(await stores[0].read(name)) == bodies[results.index(None)]
        assert sorted(os.listdir(site.folder / "deep")) == sorted(map(str, range(20)))  # noqa: PTH208
        assert all(store.exclusive_create for store in stores)
    finally:
        await asyncio.gather(*(store.close() for store in stores))


async def test_connections_are_few_and_closed(site: SftpSite) -> None:
    (site.folder / "a").write_bytes(os.urandom(MIB))
    async with site.opened() as store:
        await asyncio.gather(*(store.read("a") for _ in range(100)))
        assert client_connections(site.server.port) == 1
    assert client_connections(site.server.port) == 0


async def test_a_busy_store_opens_more_connections(site: SftpSite, monkeypatch: pytest.MonkeyPatch) -> None:
    connections = import_module("podferry.storage.sftp.connections")
    monkeypatch.setattr(connections, "GROW_SECONDS", 0.0)
    (site.folder / "a").write_bytes(os.urandom(MIB))
    async with site.opened() as store:
        async with asyncio.timeout(PATIENCE):
            while client_connections(site.server.port) < connections.MAX_CONNECTIONS:
                await asyncio.gather(*(store.read("a") for _ in range(20)))
        await asyncio.gather(*(store.read("a") for _ in range(100)))
        assert client_connections(site.server.port) == connections.MAX_CONNECTIONS
    assert client_connections(site.server.port) == 0


@asynccontextmanager
async def behind_relay(site: SftpSite) -> AsyncIterator[tuple[Relay, Store]]:
    """A store that reaches the server through a relay, connected."""
    async with relaying(site.server.address) as relay:
        known = site.server.known_hosts.replace(site.host, f"[127.0.0.1]:{relay.address.split(':')[1]}")
        limits = Limits(retries=3, retry_seconds=60, stall_seconds=2)
        async with site.opened(address=relay.address, limits=limits, SFTP_KNOWN_HOSTS=known) as store:
            await store.children()
            yield relay, store


async def test_a_read_that_is_cut_continues_where_it_was(site: SftpSite) -> None:
    data = os.urandom(24 * MIB)
    (site.folder / "a").write_bytes(data)
    async with behind_relay(site) as (relay, store):
        entry = await store.stat("a")
        await _lose(store)
        relay.cuts = [14 * MIB, 6 * MIB, 1]
        assert bytes(await store.read("a", 0, entry.size, entry.tag, entry.size)) == data
        assert relay.connections == 5
        assert relay.received < 26 * MIB


async def test_a_listing_and_a_small_file_survive_a_cut(site: SftpSite) -> None:
    for number in range(300):
        (site.folder / f"{number:03}").write_bytes(b"12345")
    async with behind_relay(site) as (relay, store):
        relay.cuts = [8_000]
        await _lose(store)
        found = await names(store)
        assert found == [f"{number:03}" for number in range(300)]
        relay.cuts = []
        assert [bytes(await store.read(name)) for name in found[:5]] == [b"12345"] * 5


async def test_a_write_that_is_cut_leaves_nothing_visible(site: SftpSite) -> None:
    async with behind_relay(site) as (relay, store):
        await store.write("old", b"old")

        def body() -> Iterator[bytes]:
            yield b"x" * (16 * MIB)
            relay.passing.clear()
            yield b"x" * (16 * MIB)

        with pytest.raises(Unavailable):
            await store.write("old", body())
        relay.passing.set()
        assert await names(store) == ["old"]
        assert bytes(await store.read("old")) == b"old"


async def test_a_server_that_falls_silent_is_an_outage(site: SftpSite) -> None:
    site.write_one()
    async with behind_relay(site) as (relay, store):
        assert await names(store) == ["a"]
        relay.passing.clear()
        with pytest.raises(Unavailable, match="does not respond"):
            await store.read("a")
        relay.passing.set()
        assert bytes(await store.read("a")) == b"12345"


async def test_a_server_that_changes_its_host_key_later_is_an_outage(site: SftpSite, tmp_path: Path) -> None:
    site.write_one()
    (tmp_path / "files").mkdir()
    (tmp_path / "server").mkdir()
    with import_module("tests.support.openssh").sshd(tmp_path / "files", tmp_path / "server") as other:
        async with behind_relay(site) as (relay, store):
            assert await names(store) == ["a"]
            relay._target = other.address
            await _lose(store)
            with pytest.raises(Unavailable, match="not the known one"):
                await store.read("a")


async def _lose(store: Any) -> None:
    """Lose the connections, as when the server is started again."""
    for connection in store._connections._open:
        connection.ssh.abort()
        await connection.ssh.wait_closed()

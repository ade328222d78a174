"""SFTP at OpenSSH's server: who is let in, what fails and how, lost connections, races, odd names."""

from __future__ import annotations

import asyncio
import os
import subprocess
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
    CredentialsMissing,
    FerryError,
    InvalidSpec,
    NotFound,
    Unavailable,
)
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import Store, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import Limits
from tests.support.client_connections import client_connections
from tests.support.patience import PATIENCE
from tests.support.relay import Relay, relaying

LIMITS = Limits(retries=2, retry_seconds=20, stall_seconds=10)
MIB = 1 << 20


class Site:
    """A directory at the server.

    Attributes:
        server: See `tests.support.openssh.Sshd`.
        folder: The same directory here.
        path: Its path at the server.
    """

    def __init__(self, server: Any, files: Path) -> None:
        self.server = server
        self.folder = files / f"d{len(list(files.iterdir()))}"
        self.path = f"srv/files/{self.folder.name}"
        self.folder.mkdir()
        os.chown(self.folder, files.stat().st_uid, -1)

    @asynccontextmanager
    async def opened(
        self, path: str = "", address: str = "", limits: Limits = LIMITS, **variables: str
    ) -> AsyncIterator[Store]:
        store = self.store(path, address, limits, **variables)
        try:
            yield store
        finally:
            await store.close()

    def store(self, path: str = "", address: str = "", limits: Limits = LIMITS, **variables: str) -> Store:
        uri = parse_uri(f"sftp://{address or self.server.address}/{path or self.path}")
        found = {**self.server.credentials, **variables}
        credentials = {name: value for name, value in found.items() if value}
        return open_store(uri, StoreConfig(credentials=credentials), limits)

    async def fails(self, error: type[FerryError], words: str, path: str = "", **variables: str) -> None:
        with pytest.raises(error, match=words) as caught:
            async with self.opened(path, **variables) as store:
                await store.children()
        assert "password" not in str(caught.value).replace("SFTP_PASSWORD", "").replace("a password", "") or (
            "its password" in str(caught.value)
        )


@pytest.fixture
def site(sftp: Any, sftp_files: Path) -> Site:
    return Site(sftp, sftp_files)


async def names(store: Store) -> list[str]:
    return sorted([entry.name async for entry in store.entries()])


# The login.


async def test_a_wrong_password_is_named(site: Site) -> None:
    await site.fails(AccessDenied, "rejects the login.*offered: a password; user user", SFTP_PASSWORD="other")


async def test_an_unknown_user_is_named(site: Site) -> None:
    await site.fails(AccessDenied, "rejects the login.*user nobody", SFTP_USERNAME="nobody")


async def test_a_key_opens_the_store_as_text_and_as_a_file(site: Site) -> None:
    await _write_one(site)
    for key in (site.server.private_key.read_text().strip(), str(site.server.private_key)):
        async with site.opened(SFTP_PASSWORD="", SFTP_PRIVATE_KEY=key) as store:
            assert await names(store) == ["a"]


async def test_keys_of_kubernetes_secrets_are_understood(site: Site) -> None:
    await _write_one(site)
    own = {"SFTP_USERNAME": "", "SFTP_PASSWORD": "", "SFTP_KNOWN_HOSTS": ""}
    known = {"username": "user", "known_hosts": site.server.known_hosts}
    for credential in ({"password": "password"}, {"ssh-privatekey": site.server.private_key.read_text()}):
        async with site.opened(**own, **known, **credential) as store:
            assert await names(store) == ["a"]


async def test_another_key_is_rejected(site: Site, tmp_path: Path) -> None:
    key = _key(tmp_path / "other", "")
    await site.fails(AccessDenied, "offered: 1 key; user", SFTP_PASSWORD="", SFTP_PRIVATE_KEY=key)


async def test_a_key_with_a_passphrase_needs_it(site: Site, tmp_path: Path) -> None:
    key = _key(tmp_path / "other", "secret of the key")
    given = {"SFTP_PASSWORD": "", "SFTP_PRIVATE_KEY": key}
    await site.fails(InvalidSpec, "SFTP_PRIVATE_KEY cannot be used.*set SFTP_PASSPHRASE", **given)
    await site.fails(
        InvalidSpec, "SFTP_PRIVATE_KEY cannot be used.*set SFTP_PASSPHRASE", **given, SFTP_PASSPHRASE="other"
    )
    await site.fails(AccessDenied, "offered: 1 key", **given, SFTP_PASSPHRASE="secret of the key")


async def test_a_text_that_is_no_key_is_named_and_not_shown(site: Site) -> None:
    with pytest.raises(InvalidSpec, match="SFTP_PRIVATE_KEY cannot be used") as caught:
        async with site.opened(SFTP_PRIVATE_KEY="-----BEGIN hidden\n") as store:
            await store.children()
    assert "hidden" not in str(caught.value)


async def test_an_unknown_host_key_is_refused_with_its_fingerprint(site: Site) -> None:
    fingerprint = import_module("asyncssh").import_public_key(_public(site)).get_fingerprint()
    for known, words in (
        (f"elsewhere {_public(site)}", "host key of the server of .* is not known"),
        (f"{_host(site)} {_other_public()}", "is not the known one: its host key differs"),
        (f"@revoked {_host(site)} {_public(site)}", "is not known"),
    ):
        with pytest.raises(InvalidSpec, match=words) as caught:
            async with site.opened(SFTP_KNOWN_HOSTS=known) as store:
                await store.children()
        assert fingerprint in str(caught.value)


async def test_any_host_key_is_accepted_only_on_request(site: Site) -> None:
    await _write_one(site)
    with pytest.raises(CredentialsMissing, match="ssh-keyscan -p"):
        site.store(SFTP_KNOWN_HOSTS="")
    async with site.opened(SFTP_KNOWN_HOSTS="", SFTP_INSECURE_IGNORE_HOST_KEY="true") as store:
        assert await names(store) == ["a"]


async def test_a_closed_port_is_an_outage(site: Site) -> None:
    limits = Limits(retries=1, retry_seconds=1)
    with pytest.raises(Unavailable, match="connection refused"):
        async with site.opened(address="127.0.0.1:1", limits=limits) as store:
            await store.children()


async def test_a_user_without_sftp_is_named(site: Site, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "server").mkdir()
    sshd = import_module("tests.support.openssh").sshd
    with sshd(tmp_path / "files", tmp_path / "server", "ForceCommand echo Welcome") as found:
        known = found.known_hosts
        with pytest.raises(InvalidSpec, match=r"does not offer SFTP.*Welc"):
            async with site.opened(address=found.address, SFTP_KNOWN_HOSTS=known) as store:
                await store.children()


# What may be read.


async def test_who_may_read_but_not_list_is_told_so(site: Site) -> None:
    (site.folder / "closed").mkdir()
    (site.folder / "closed/a").write_bytes(b"12345")
    (site.folder / "closed").chmod(0o711)
    async with site.opened() as store:
        assert bytes(await store.read("closed/a")) == b"12345"
        with pytest.raises(AccessDenied, match=r"denies access to .*/closed"):
            await names(store)
    with pytest.raises(AccessDenied, match=r"denies access to .*/closed"):
        await open_dataset(store.uri, StoreConfig(credentials=site.server.credentials))


async def test_a_file_that_may_not_be_read_is_named(site: Site) -> None:
    (site.folder / "a").write_bytes(b"12345")
    (site.folder / "a").chmod(0o600)  # root's
    async with site.opened() as store:
        with pytest.raises(AccessDenied, match=r"denies access to .*/a"):
            await store.read("a")


async def test_where_nothing_may_be_written_is_named(site: Site) -> None:
    (site.folder / "closed").mkdir(mode=0o755)  # root's
    async with site.opened() as store:
        for name in ("closed/a", "closed/deeper/a"):
            with pytest.raises(FerryError, match=f"denies access to .*/{name}"):
                await store.write(name, b"x")


async def test_a_missing_path_is_empty_and_suggests_others(site: Site) -> None:
    await _write_one(site)
    uri = parse_uri(f"sftp://{site.server.address}/{site.path}s")
    with pytest.raises(NotFound, match=f"the dataset is empty.*/{site.folder.name}"):
        await open_dataset(uri, StoreConfig(credentials=site.server.credentials))


async def test_a_full_disk_is_named(site: Site) -> None:
    full = import_module("tests.support.openssh").FULL.strip("/")
    async with site.opened(path=f"{full}/{site.folder.name}") as store:
        await store.write("fits", b"x" * 1000)
        with pytest.raises(Unavailable, match=r"no space left to write .*/large.*0 blocks free"):
            await store.write("large", iter([b"x" * MIB]))
        assert await names(store) == ["fits"]


async def test_a_path_below_the_home_directory(site: Site) -> None:
    await _write_one(site)
    async with site.opened(path=f"~/files/{site.folder.name}") as store:  # the home directory is /srv
        assert await names(store) == ["a"]
        await store.write("new/b", b"x")
        assert await names(store) == ["a", "new/b"]


async def test_a_file_that_changes_while_it_is_read_is_refused(site: Site) -> None:
    await _write_one(site)
    async with site.opened() as store:
        entry = await store.stat("a")
        os.utime(site.folder / "a", (1, 1))
        with pytest.raises(Changed):
            await store.read("a", 0, entry.size, entry.tag, entry.size)


async def test_names_as_a_file_system_has_them(site: Site) -> None:
    odd = ["x" * 255, "case", "Case", "back\\slash", "new%20name", "#?&", "~"]
    for name in odd:
        (site.folder / name).write_bytes(name.encode())
    async with site.opened() as store:
        assert await names(store) == sorted(odd)
        for name in odd:
            assert bytes(await store.read(name)) == name.encode()


async def test_a_name_that_is_not_utf_8_is_named(site: Site) -> None:
    (Path(os.fsencode(site.folder).decode()) / os.fsdecode(b"latin-\xe9")).write_bytes(b"x")
    uri = parse_uri(f"sftp://{site.server.address}/{site.path}")
    with pytest.raises(FerryError, match=r"not UTF-8.*latin-"):
        await open_dataset(uri, StoreConfig(credentials=site.server.credentials))


async def test_what_is_no_file_is_left_out(site: Site) -> None:
    await _write_one(site)
    os.mkfifo(site.folder / "pipe")
    async with site.opened() as store:
        assert await names(store) == ["a"]


# Connections.


async def test_of_eight_writers_one_creates(site: Site) -> None:
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


async def test_connections_are_few_and_closed(site: Site) -> None:
    (site.folder / "a").write_bytes(os.urandom(MIB))
    async with site.opened() as store:
        await asyncio.gather(*(store.read("a") for _ in range(100)))
        assert client_connections(site.server.port) == 1
    assert client_connections(site.server.port) == 0


async def test_a_busy_store_opens_more_connections(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
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
async def behind_relay(site: Site) -> AsyncIterator[tuple[Relay, Store]]:
    """A store that reaches the server through a relay, connected."""
    async with relaying(site.server.address) as relay:
        known = site.server.known_hosts.replace(_host(site), f"[127.0.0.1]:{relay.address.split(':')[1]}")
        limits = Limits(retries=3, retry_seconds=60, stall_seconds=2)
        async with site.opened(address=relay.address, limits=limits, SFTP_KNOWN_HOSTS=known) as store:
            await store.children()
            yield relay, store


async def test_a_read_that_is_cut_continues_where_it_was(site: Site) -> None:
    data = os.urandom(24 * MIB)
    (site.folder / "a").write_bytes(data)
    async with behind_relay(site) as (relay, store):
        entry = await store.stat("a")
        await _lose(store)
        relay.cuts = [14 * MIB, 6 * MIB, 1]
        assert bytes(await store.read("a", 0, entry.size, entry.tag, entry.size)) == data
        assert relay.connections == 5
        assert relay.received < 26 * MIB


async def test_a_listing_and_a_small_file_survive_a_cut(site: Site) -> None:
    for number in range(300):
        (site.folder / f"{number:03}").write_bytes(b"12345")
    async with behind_relay(site) as (relay, store):
        relay.cuts = [8_000]
        await _lose(store)
        found = await names(store)
        assert found == [f"{number:03}" for number in range(300)]
        relay.cuts = []
        assert [bytes(await store.read(name)) for name in found[:5]] == [b"12345"] * 5


async def test_a_write_that_is_cut_leaves_nothing_visible(site: Site) -> None:
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


async def test_a_server_that_falls_silent_is_an_outage(site: Site) -> None:
    await _write_one(site)
    async with behind_relay(site) as (relay, store):
        assert await names(store) == ["a"]
        relay.passing.clear()
        with pytest.raises(Unavailable, match="does not respond"):
            await store.read("a")
        relay.passing.set()
        assert bytes(await store.read("a")) == b"12345"


async def test_a_server_that_changes_its_host_key_later_is_an_outage(site: Site, tmp_path: Path) -> None:
    await _write_one(site)
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


async def _write_one(site: Site) -> None:
    (site.folder / "a").write_bytes(b"12345")


def _host(site: Site) -> str:
    return str(site.server.known_hosts.split()[0])


def _public(site: Site) -> str:
    return " ".join(site.server.known_hosts.split()[1:])


def _other_public() -> str:
    asyncssh = import_module("asyncssh")
    key = asyncssh.generate_private_key("ssh-ed25519")
    return str(key.export_public_key().decode().strip())


def _key(path: Path, passphrase: str) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)
    return path.read_text()

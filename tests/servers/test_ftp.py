"""FTP at vsftpd and pyftpdlib: who is let in, what fails and how, lost connections, TLS, odd names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from importlib import import_module  # what only these tests need is not installed for the others
from pathlib import Path
from typing import Any

import pytest

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    Changed,
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
from tests.support.ftp_site import LIMITS, Site, config, served

MIB = 1 << 20


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with served(tmp_path) as found:
        yield found


async def names(store: Store) -> list[str]:
    return sorted([entry.name async for entry in store.entries()])


@pytest.mark.parametrize("wrong", [{"FTP_PASSWORD": "other"}, {"FTP_USERNAME": "nobody"}])
async def test_a_rejected_login_is_named(site: Site, wrong: dict[str, str]) -> None:
    async with site.opened(**wrong) as store:
        for call in (store.stat("a"), store.read("a"), store.write("a", b"x"), store.children()):
            with pytest.raises(AccessDenied, match=r"rejects the login.*530.*user.*FTP_PASSWORD") as caught:
                await call
            assert "other" not in str(caught.value)


async def test_the_anonymous_user_reads(tmp_path: Path) -> None:
    options = ("anonymous_enable=YES", "anon_root=/srv/files", "ftp_username=user", "no_anon_password=YES")
    with served(tmp_path, *options) as site:
        site.folder.chmod(0o555)  # vsftpd refuses a root that the anonymous user may write to
        os.chown(site.folder, 0, 0)
        (site.folder / "a").write_bytes(b"12345")
        store = open_store(parse_uri(f"ftp://{site.address}/"), StoreConfig(), LIMITS)
        assert await names(store) == ["a"]
        assert bytes(await store.read("a", 1, 3)) == b"234"
        await store.close()


async def test_a_closed_port_is_an_outage() -> None:
    store = open_store(parse_uri("ftp://127.0.0.1:1/"), config(), Limits(retries=1, retry_seconds=1))
    with pytest.raises(Unavailable, match="connection refused"):
        await store.children()
    await store.close()


async def test_who_may_read_but_not_list_is_told_so(site: Site) -> None:
    (site.folder / "closed").mkdir()
    (site.folder / "closed/a").write_bytes(b"12345")
    (site.folder / "closed").chmod(0o711)
    async with site.opened() as store:
        with pytest.raises(AccessDenied, match=r"denies access to .*/closed"):
            await names(store)
        assert bytes(await store.read("closed/a")) == b"12345"
    (site.folder / "closed").chmod(0o700)
    async with site.opened() as store:
        with pytest.raises(AccessDenied, match=r"denies access to .*/closed"):
            await names(store)


async def test_a_file_that_may_not_be_read_is_named(site: Site) -> None:
    (site.folder / "a").write_bytes(b"12345")
    (site.folder / "a").chmod(0o600)  # root's
    async with site.opened() as store:
        with pytest.raises(AccessDenied, match=r"denies access to .*/a"):
            await store.read("a")


async def test_a_missing_path_is_empty_and_suggests_others(site: Site) -> None:
    (site.folder / "set").mkdir()
    (site.folder / "set/a").write_bytes(b"12345")
    with pytest.raises(NotFound, match=r"the dataset is empty.*/set"):
        await open_dataset(parse_uri(f"ftp://{site.address}/sets"), config())


async def test_names_as_a_file_system_has_them(site: Site) -> None:
    odd = ["x" * 255, "case", "Case", " leading", "trailing ", "a -> b", "#?&", "~", "*[set]", "-l"]
    for name in odd:
        (site.folder / name).write_bytes(name.encode())
    async with site.opened() as store:
        assert await names(store) == sorted(odd)
        for name in odd:
            assert bytes(await store.read(name)) == name.encode()


async def test_links_with_an_arrow_in_their_names_are_files_of_their_own(site: Site) -> None:
    (site.folder / "d").mkdir()
    for name in ("foo", "target", "d/a"):
        (site.folder / name).write_bytes(name.encode())
    for link, target in (("foo -> odd", "target"), ("to", "target"), ("foo -> d", "d")):
        (site.folder / link).symlink_to(target)
    async with site.opened() as store:
        found = {entry.name: bytes(await store.read(entry.name)) async for entry in store.entries()}
    targets = {"foo -> odd": b"target", "to": b"target", "foo -> d/a": b"d/a"}
    assert found == {"foo": b"foo", "target": b"target", "d/a": b"d/a", **targets}


async def test_a_name_that_is_not_utf_8_is_named(site: Site) -> None:
    (site.folder / os.fsdecode(b"latin-\xe9")).write_bytes(b"x")
    with pytest.raises(FerryError, match=r"not UTF-8.*latin-"):
        await open_dataset(parse_uri(f"ftp://{site.address}/"), config())


async def test_an_edit_is_noticed_by_its_time(site: Site) -> None:
    (site.folder / "a").write_bytes(b"12345")
    async with site.opened() as store:
        (entry,) = [entry async for entry in store.entries()]
        assert entry == await store.stat("a")
        assert bytes(await store.read("a", 0, 5, entry.tag, 5)) == b"12345"
        os.utime(site.folder / "a", (1, 1))
        with pytest.raises(Changed):
            await store.read("a", 0, 5, entry.tag, 5)


async def test_of_eight_writers_nobody_loses_a_part(site: Site) -> None:
    """FTP cannot create exclusively: the store says so, and what is there is one writer's, whole."""
    async with site.opened() as store:
        bodies = [bytes([65 + i]) * 100_000 for i in range(8)]
        writes = (store.write("a", body, WriteMode.CREATE) for body in bodies)
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert {type(result) for result in results} <= {type(None), AlreadyExists}
        assert bytes(await store.read("a")) in bodies
        assert not store.exclusive_create
        assert await names(store) == ["a"]


async def test_sessions_are_few_and_closed(site: Site) -> None:
    (site.folder / "a").write_bytes(os.urandom(MIB))
    port = int(site.address.rpartition(":")[2])
    async with site.opened() as store:
        await asyncio.gather(*(store.read("a") for _ in range(60)))
        assert 1 <= client_connections(port) <= import_module("podferry.storage.ftp.sessions").MAX_SESSIONS
    assert client_connections(port) == 0


async def test_a_server_that_admits_few_sessions_is_enough(tmp_path: Path) -> None:
    with served(tmp_path, "max_per_ip=2") as site:
        (site.folder / "a").write_bytes(b"12345")
        async with site.opened() as store:
            found = await asyncio.gather(*(store.read("a") for _ in range(40)))
            assert {bytes(data) for data in found} == {b"12345"}


async def test_a_session_that_the_server_has_ended_is_replaced(tmp_path: Path) -> None:
    with served(tmp_path, "idle_session_timeout=1") as site:
        (site.folder / "a").write_bytes(b"12345")
        async with site.opened() as store:
            assert await names(store) == ["a"]
            for session in store._sessions._idle:  # type: ignore[attr-defined]
                session.sock.shutdown(2)
            assert bytes(await store.read("a")) == b"12345"


# A transfer that is cut.


def cutting(after: list[int]) -> Any:
    """Data connections that break, each after as many bytes as the next number says."""
    base = import_module("pyftpdlib.handlers").DTPHandler

    class Cutting(base):  # type: ignore[misc,valid-type]
        def send(self, data: bytes) -> Any:
            if not hasattr(self, "left"):
                self.left = after.pop(0) if after else 1 << 62
            if self.left <= 0:
                self.socket.close()
                raise ConnectionResetError(104, "cut by the test")
            self.left -= len(data)
            return super().send(data)

    return Cutting


async def test_a_read_that_is_cut_continues_where_it_was(tmp_path: Path) -> None:
    data, cuts = os.urandom(8 * MIB), [5 * MIB, 2 * MIB]
    (tmp_path / "a").write_bytes(data)
    serving = import_module("tests.support.ftp_server").serving
    with serving(tmp_path, dtp=cutting(cuts)) as address:
        store = open_store(parse_uri(f"ftp://{address}/"), config(), LIMITS)
        entry = await store.stat("a")
        assert bytes(await store.read("a", 0, entry.size, entry.tag, entry.size)) == data
        assert cuts == []
        await store.close()


# TLS.


@pytest.mark.parametrize("kind", ["explicit", "implicit"])
async def test_the_certificate_is_checked(request: pytest.FixtureRequest, kind: str) -> None:
    address, certificate = request.getfixturevalue(f"vsftpd_{kind}")
    for given, error in ((certificate, None), ("", InvalidSpec)):
        store = open_store(parse_uri(f"ftps://{address}/"), config(given, FTP_TLS=kind), LIMITS)
        if error is None:
            await store.children()
        else:
            with pytest.raises(error, match=r"certificate of the server .* is not trusted"):
                await store.children()
        await store.close()


async def test_a_server_without_tls_is_named(site: Site) -> None:
    for kind, words in (("explicit", "AUTH|TLS|530|500|denies|respond"), ("implicit", "TLS")):
        async with site.opened(scheme="ftps", FTP_TLS=kind) as store:
            with pytest.raises(FerryError, match=words):
                await store.children()


async def test_a_server_that_requires_tls_is_named(request: pytest.FixtureRequest) -> None:
    address, _ = request.getfixturevalue("vsftpd_explicit")
    store = open_store(parse_uri(f"ftp://{address}/"), config(), LIMITS)
    with pytest.raises(FerryError, match="ftps://"):
        await store.children()
    await store.close()

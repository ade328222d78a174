"""Shares of Samba's own server: the contract, and what shares alone can meet."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podferry.contract.errors import (
    AlreadyExists,
    FerryError,
    InvalidSpec,
    NotFound,
    Unavailable,
)
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.contract_suite.store import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.smb.login import Share
from podferry.storage.smb.messages import Command, Request, close
from podferry.storage.smb.reads import opened as opened_file
from podferry.storage.store import WriteMode
from tests.support.client_connections import client_connections
from tests.support.patience import PATIENCE
from tests.support.reserved_port import reserved_port
from tests.support.samba import KEYS, Samba, samba
from tests.support.smb_share import CONFIG, QUICK, listed, opened

PROTOCOLS = {
    "3.1.1": (),
    "3.1.1, encrypted": ("server smb encrypt = required",),
    "3.0.2": ("server max protocol = SMB3_02",),
    "3.0, encrypted": ("server max protocol = SMB3_00", "server smb encrypt = required"),
    "2.1": ("server max protocol = SMB2_10",),
}


@pytest.fixture(params=PROTOCOLS)
def server_of_protocol(request, tmp_path_factory) -> Iterator[Samba]:
    files, folder = (tmp_path_factory.mktemp(name) for name in ("files", "samba"))
    with samba(files, folder, *PROTOCOLS[request.param]) as found:
        yield found


@pytest.mark.parametrize(
    ("protocol", "found"),
    [("NT1", "it speaks SMB 1 alone"), ("SMB2_02", r"STATUS_NOT_SUPPORTED; .* 2\.0\.2 or 1")],
)
async def test_a_server_of_an_older_protocol_is_named(tmp_path: Path, protocol: str, found: str) -> None:
    for name in ("files", "own"):
        (tmp_path / name).mkdir()
    options = f"server min protocol = {protocol}", f"server max protocol = {protocol}"
    with samba(tmp_path / "files", tmp_path / "own", *options) as server:
        store = opened(server, "d")
        expected = (
            rf"no version of SMB in common .*\({found}.*podferry speaks SMB 2\.1, 3\.0, 3\.0\.2 and 3\.1\.1"
        )
        with pytest.raises(InvalidSpec, match=expected):
            await store.children()
        await store.close()


async def test_all_dialects_and_encryption(server_of_protocol: Samba) -> None:
    store, large = opened(server_of_protocol, "d"), os.urandom(11 << 20)
    await store.write("large", iter([large]))
    await asyncio.gather(*(store.write(f"small/{i}", bytes([i]) * 1000) for i in range(20)))
    assert bytes(await store.read("large")) == large
    assert bytes(await store.read("large", 3, 9 << 20)) == large[3 : 3 + (9 << 20)]
    assert (
        bytes((await asyncio.gather(*(store.read(f"small/{i}") for i in range(20))))[7]) == bytes([7]) * 1000
    )
    await store.write("one", b"1", WriteMode.CREATE)
    assert await store.children() == ["large", "one", "small/"]
    await store.close()


async def test_a_share_that_insists_on_encryption(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "state").mkdir()
    with samba(tmp_path / "files", tmp_path / "state", share=("server smb encrypt = required",)) as server:
        store = opened(server)
        await store.write("a", b"1")
        assert bytes(await store.read("a")) == b"1"
        await store.close()


async def test_encryption_on_demand(server: Samba, folder: Path, fresh) -> None:
    (folder / "a").write_bytes(b"12")
    store = opened(server, fresh, keys={**KEYS, "SMB_ENCRYPTION": "required"})
    assert bytes(await store.read("a")) == b"12"
    await store.close()


async def test_a_file_that_somebody_keeps_open_is_not_replaced_and_nobody_is_denied(
    server: Samba, fresh, monkeypatch
) -> None:
    monkeypatch.setattr("podferry.storage.smb.writes.PAUSES", (0.01,))
    store = opened(server, fresh)
    await store.write("a", b"1")

    async def write_meanwhile(share: Share) -> None:
        """Write while the file is open for reading."""
        held = await opened_file(share.connection, store._path("a"))
        try:
            with pytest.raises(Unavailable, match=r"another program has .*/a open"):
                await store.write("a", b"2")
        finally:
            await share.connection.call(close(held.handle))

    await store._connections.run(write_meanwhile)
    await store.write("a", b"3")
    assert bytes(await store.read("a")) == b"3"
    await store.close()


# Connections.


async def test_closing_one_store_harms_no_other_and_leaves_no_connection(server: Samba, fresh) -> None:
    stores = [opened(server, fresh) for _ in range(2)]
    before = client_connections(server.port)
    await stores[0].write("a", b"1")
    await asyncio.gather(*(stores[1].read("a") for _ in range(50)))
    assert client_connections(server.port) > before + 1
    await stores[0].close()
    assert bytes(await stores[1].read("a")) == b"1"
    await stores[1].close()
    await reached(lambda: client_connections(server.port) == before)


async def reached(condition) -> None:
    for _ in range(int(PATIENCE * 20)):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("not reached")


async def test_a_cut_connection_is_opened_again(server: Samba, fresh) -> None:
    store, data = opened(server, fresh), os.urandom(20 << 20)
    await store.write("a", iter([data]))
    shares = store._connections._shares

    async def cut() -> None:
        await reached(lambda: any(share.connection.calls for share in shares))
        for share in shares:
            share.connection._transport.abort()

    entry = await store.stat("a")
    read, _ = await asyncio.gather(store.read("a", 0, entry.size, entry.tag, entry.size), cut())
    assert bytes(read) == data
    await store.close()


async def test_a_server_that_stops_is_neither_empty_nor_without_the_file(tmp_path: Path) -> None:
    for name in ("files", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "files/a").write_bytes(b"12345")
    with samba(tmp_path / "files", tmp_path / "state") as server:
        store = opened(server)
        assert await store.children() == ["a"]
    for call in (store.stat("a"), store.read("a"), store.children(), store.write("b", b"1"), listed(store)):
        with pytest.raises(Unavailable):
            await call


@pytest.fixture(params=["hard links", "no hard links"])
def links(request, monkeypatch) -> None:
    """Whether the share has them: Azure's has none."""
    if request.param == "no hard links":

        def unknown(handle: bytes, path: str) -> Request:
            return Request(
                Command.SET_INFO, struct.pack("<HBBIHHI16s", 33, 1, 99, 1, 96, 0, 0, handle) + b"1"
            )

        monkeypatch.setattr("podferry.storage.smb.writes.link", unknown)


async def test_exclusive_writes(server: Samba, fresh, links) -> None:
    store = opened(server, fresh)
    data = os.urandom(3 << 20)
    await store.write("d/a", data, WriteMode.CREATE)
    with pytest.raises(AlreadyExists):
        await store.write("d/a", b"other", WriteMode.CREATE)
    assert bytes(await store.read("d/a")) == data
    assert [path.name for path in (server.files / fresh / "d").iterdir()] == ["a"]
    await store.close()


async def test_a_lost_exclusive_write_leaves_nothing(server: Samba, fresh, links) -> None:
    store, other = opened(server, fresh), opened(server, fresh)
    await store.write("z", b"1")
    (share,) = store._connections._shares
    call = share.connection.call

    async def cut_before_the_end(*requests):
        if requests[0].command == 7:  # FLUSH
            share.connection.abort()
        return await call(*requests)

    share.connection.call = cut_before_the_end
    with pytest.raises(Unavailable):
        await store.write("a", b"123", WriteMode.CREATE)
    await other.write("a", b"45", WriteMode.CREATE)
    assert bytes(await other.read("a")) == b"45"
    await store.close()
    await other.close()


async def test_of_many_creators_with_connections_of_their_own_one_wins(server: Samba, fresh) -> None:
    """And nobody reads less than what the winner wrote."""
    stores = [opened(server, fresh) for _ in range(6)]
    await asyncio.gather(*(store.children() for store in stores))

    async def create(number: int, name: str) -> int:
        await stores[number].write(name, bytes([number]) * 70_000, WriteMode.CREATE)
        return number

    async def looked(name: str) -> list[bytes]:
        found = []
        for _ in range(20):
            with contextlib.suppress(NotFound, Unavailable):
                found.append(bytes(await stores[0].read(name)))
        return found

    for name in ("d/one", "d/two", "d/three", "four"):
        creating = [create(number, name) for number in range(6)]
        *results, seen = await asyncio.gather(*creating, looked(name), return_exceptions=True)
        (winner,) = [result for result in results if isinstance(result, int)]
        assert all(isinstance(result, AlreadyExists) for result in results if not isinstance(result, int))
        assert {*seen, bytes(await stores[1].read(name))} == {bytes([winner]) * 70_000}
    for store in stores:
        await store.close()


async def test_an_address_of_ipv6(server: Samba, folder: Path, fresh) -> None:
    (folder / "a").write_bytes(b"1")
    store = open_store(
        parse_uri(f"smb://[::1]:{server.port}/share/{fresh.replace('%', '%25')}"), CONFIG, QUICK
    )
    assert await store.children() == ["a"]
    await store.close()


async def test_a_closed_port() -> None:
    with reserved_port() as port:
        store = open_store(Uri("smb", f"127.0.0.1:{port}", "share"), CONFIG, QUICK)
        with pytest.raises(Unavailable, match="refused"):
            await store.children()


async def test_a_directory_is_not_a_file(store) -> None:
    await store.write("d/a", b"1")
    with pytest.raises(NotFound):
        await store.read("d")
    with pytest.raises(FerryError):
        await store.write("d", b"2")
    assert bytes(await store.read("d/a")) == b"1"


def test_a_get_loads_no_logs(server: Samba, folder: Path, fresh, tmp_path: Path) -> None:
    """They take as long to load as a thousand small files take to fetch."""
    (folder / "a").write_bytes(b"1")
    uri = str(Uri("smb", server.address, f"share/{fresh}"))
    code = (
        "import sys\n"
        "from podferry.cli.main import main\n"
        f"sys.argv = ['podferry', 'dataset', 'get', {uri!r}, {str(tmp_path / 'got')!r}]\n"
        "assert main() in (0, None)\n"
        "print([name for name in ('structlog', 'stamina', 'rich', 'fsspec') if name in sys.modules])\n"
    )
    command, environ = [sys.executable, "-c", code], {**os.environ, **KEYS}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr
    assert (tmp_path / "got/a").read_bytes() == b"1"


async def test_a_server_at_its_limit_of_connections_is_named(tmp_path: Path) -> None:
    """Samba closes the connection without a word."""
    for folder in ("files", "state"):
        (tmp_path / folder).mkdir()
    with samba(tmp_path / "files", tmp_path / "state", "max smbd processes = 2") as server:
        # Each counts from when it is accepted, and Samba has two processes of its own.
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
        store = opened(server)
        with pytest.raises(Unavailable, match=r"closes the connection .*max smbd processes"):
            await store.children()
        for connection in held:
            connection.close()
        await store.close()


async def test_special_files_look_empty(server: Samba, folder: Path, fresh) -> None:
    """Samba shows neither an attribute nor a reparse tag of a pipe; the page of smb:// says so."""
    os.mkfifo(folder / "pipe")
    assert await listed(opened(server, fresh)) == {"pipe": 0}

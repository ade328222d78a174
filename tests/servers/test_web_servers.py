"""Web servers as they are: nginx with a password, over IPv6, in JSON, with odd names; a cut in the middle."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from podferry.contract.errors import (
    AccessDenied,
    Changed,
    CredentialsMissing,
    FerryError,
    InvalidSpec,
    Unavailable,
)
from podferry.contract.uri import Uri, parse_uri
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.network.ca_bundle import CaBundle
from podferry.storage.network.settings import Network
from podferry.storage.store import StoreConfig
from tests.support.cut_relay import cut_relay
from tests.support.nginx import INDEX, nginx, nginx_command, password_file
from tests.support.rclone import certificate_for_loopback
from tests.support.real_servers import running
from tests.support.request_builder_contract import *  # noqa: F403
from tests.support.staged import staged

HOST_WITH_TLS = "127.0.0.2"
KEYS = {"username": "user", "password": "pass word"}
FILES = {
    "a": b"a",
    "A": b"case",
    "a b#c?d%20%.bin": b"odd",
    "sub/<&amp;>/ü日本": b"deep",
    "sub/" + "x" * 255: b"long",
    'sub/it\'s "so"; a=b,c+d@e!(f)[g]{h}': b"quotes",
}
LISTINGS = {"html": INDEX, "json": f"{INDEX} autoindex_format json;"}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    root = tmp_path / "files"
    for name, data in FILES.items():
        path = root / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "nginx").mkdir()
    return tmp_path / "nginx"


@pytest.fixture
def address(tmp_path: Path, own: Path) -> Iterator[str]:
    with nginx(tmp_path, own) as address:
        yield address


# What the connection pool sends, as the contract on requests has it.


@pytest.fixture
async def store(address: str, fresh: str):
    store = open_store(Uri("http", address, fresh))
    yield store
    await store.close()


@pytest.fixture
def put(tmp_path: Path, fresh: str):
    async def put(name: str, data: bytes) -> None:
        path = tmp_path / fresh / name
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(path.write_bytes, data)
        written = next(seconds)  # nginx tells versions apart by size and by the second of writing
        os.utime(path, (written, written))

    seconds = count(1_700_000_000)
    return put


@pytest.fixture
def remove(tmp_path: Path, fresh: str):
    async def remove(names: list[str]) -> None:
        for name in names:
            await asyncio.to_thread((tmp_path / fresh / name).unlink)

    return remove


@pytest.fixture
def listed(store):
    return store.stat


@pytest.mark.parametrize("listing", LISTINGS)
async def test_all_names_are_staged(listing: str, files: Path, own: Path, tmp_path: Path) -> None:
    with nginx(files, own, LISTINGS[listing]) as address:
        assert await staged(f"http://{address}/set", StoreConfig(), tmp_path) == FILES


@pytest.mark.parametrize("listing", LISTINGS)
async def test_the_root_of_a_server_is_staged(listing: str, files: Path, own: Path, tmp_path: Path) -> None:
    with nginx(files / "set", own, LISTINGS[listing]) as address:
        assert await staged(f"http://{address}", StoreConfig(), tmp_path) == FILES


async def test_over_ipv6(files: Path, own: Path, tmp_path: Path) -> None:
    with nginx(files, own) as address:
        port = address.rpartition(":")[2]
        assert await staged(f"http://[::1]:{port}/set", StoreConfig(), tmp_path) == FILES


async def test_with_a_password(files: Path, own: Path, tmp_path: Path) -> None:
    guard = password_file(own / "users", KEYS["username"], KEYS["password"])
    with nginx(files, own, f"{INDEX} {guard}") as address:
        uri = f"http://{address}/set"
        assert await staged(uri, StoreConfig(credentials=KEYS), tmp_path) == FILES
        with pytest.raises(CredentialsMissing, match="Set HTTP_USERNAME"):
            await open_dataset(parse_uri(uri), StoreConfig())
        with pytest.raises(AccessDenied, match=r"rejects the credentials.*read: username, password"):
            await open_dataset(parse_uri(uri), StoreConfig(credentials={**KEYS, "password": "other"}))


async def test_a_directory_that_may_be_read_but_not_listed(files: Path, own: Path) -> None:
    with nginx(files, own, f"{INDEX} location /set/sub/ {{ autoindex off; }}") as address:
        with pytest.raises(FerryError, match="/set/sub"):
            await open_dataset(parse_uri(f"http://{address}/set"), StoreConfig())
        store = open_store(parse_uri(f"http://{address}/set"))
        assert bytes(await store.read("sub/<&amp;>/ü日本")) == b"deep"
        await store.close()


@pytest.mark.parametrize("place", ["/set/a", "/set/sub/"])
async def test_what_the_server_has_no_content_for_is_named(place: str, files: Path, own: Path) -> None:
    empty = f"{INDEX} location = {place} {{ return 204; }}"
    refused = pytest.raises(Unavailable, match=rf"{place.rstrip('/')} \(HTTP 204")
    with nginx(files, own, empty) as address, refused:
        await open_dataset(parse_uri(f"http://{address}/set"), StoreConfig())


@pytest.mark.parametrize("name", [b"\xff\xfe.bin", b"sub/latin-\xe9"])
async def test_a_name_that_is_not_text_is_named(name: bytes, files: Path, own: Path) -> None:
    Path(os.fsdecode(bytes(files) + b"/set/" + name)).write_bytes(b"x")
    with nginx(files, own) as address, pytest.raises(InvalidSpec, match="not in UTF-8"):
        await open_dataset(parse_uri(f"http://{address}/set"), StoreConfig())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the ports 80 and 443")
async def test_redirected_to_https_at_the_same_host(files: Path, own: Path, tmp_path: Path) -> None:
    """With the credentials, which a third server does not get."""
    (files / "set/elsewhere").write_bytes(b"elsewhere")
    (tmp_path / "other").mkdir()
    certificate, key = certificate_for_loopback(tmp_path)
    guard = password_file(own / "users", KEYS["username"], KEYS["password"])
    tls = f"ssl_certificate {certificate}; ssl_certificate_key {key};"
    moved = "if ($scheme = http) { return 301 https://$host$request_uri; }"
    addresses = (f"{HOST_WITH_TLS}:80", f"{HOST_WITH_TLS}:443 ssl")
    network = Network(CaBundle(certificate.read_text(), ("test",)))
    config = StoreConfig(credentials=KEYS, network=network)
    with nginx(files, tmp_path / "other", "if ($http_authorization) { return 500; }") as other:
        sent_on = f"location = /set/elsewhere {{ {moved} return 302 http://{other}$request_uri; }}"
        words = nginx_command(files, own, addresses, f"{INDEX} {guard} {tls} {moved} {sent_on}")
        with running(words, 443, own / "log", HOST_WITH_TLS):
            found = await staged(f"http://{HOST_WITH_TLS}/set", config, tmp_path)
    assert found == {**FILES, "elsewhere": b"elsewhere"}


async def test_a_cut_in_the_middle_is_resumed(files: Path, own: Path, tmp_path: Path) -> None:
    data = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(1 << 20))
    (files / "set/large").write_bytes(data)
    with nginx(files, own) as address:
        async with cut_relay(address, after=3 << 20, cuts=2) as relay:
            found = await staged(f"http://{relay.address}/set", StoreConfig(), tmp_path)
    assert found == {**FILES, "large": data}
    assert relay.cuts == 0, "the connections were cut"
    assert relay.passed < 2 * len(data), "what had arrived was not sent again"


@pytest.mark.parametrize("size", [7 << 20, 24 << 20], ids=["one response", "ranges"])
async def test_a_file_that_is_overwritten_while_it_is_sent_is_refused(
    size: int, files: Path, own: Path, tmp_path: Path
) -> None:
    path = files / "set/large"
    path.write_bytes(b"old" * (size // 3))
    os.utime(path, (1_700_000_000, 1_700_000_000))

    async def overwrite() -> None:
        partial = tmp_path / "stage" / PARTIAL_DIR
        while not any(one.stat().st_size for one in partial.glob("*")):  # noqa: ASYNC110 - files have no event
            await asyncio.sleep(0.01)
        with path.open("r+b") as file:  # nginx goes on to read what it has open
            file.write(b"new" * (size // 3))

    with nginx(files, own, f"{INDEX} limit_rate 4m;") as address:
        task = asyncio.create_task(overwrite())
        with pytest.raises(Changed, match="/set/large"):
            await staged(f"http://{address}/set", StoreConfig(), tmp_path)
        await task
    assert not (tmp_path / "stage/large").exists()

"""The contract on real WebDAV servers, and what else they do."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

import pytest

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    CredentialsMissing,
    InvalidSpec,
    Unavailable,
)
from podferry.contract.uri import Uri
from podferry.storage.contract_suite.store import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import Limits
from tests.support.cut_relay import cut_relay
from tests.support.nginx import nginx
from tests.support.request_builder_contract import *  # noqa: F403
from tests.support.staged import staged
from tests.support.webdav_servers import KEYS, SERVERS, rclone_webdav

CONFIG = StoreConfig(credentials=KEYS)
LIMITS = Limits(part_bytes=5 << 20)


# None of these servers replaces a file in one step: docs/stores/webdav.md.
test_who_names_no_version_reads_one_while_it_is_replaced = None


class Server(NamedTuple):
    """One that runs; `files` is what it serves."""

    name: str
    address: str
    files: Path


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    files, own = (tmp_path_factory.mktemp(f"{request.param}-{name}") for name in ("files", "own"))
    with SERVERS[request.param](files, own) as address:
        yield Server(request.param, address, files)


@pytest.fixture
def refused_characters(server: Server) -> str:
    """WsgiDAV cuts the target of a move at `?` and `;`, although they are encoded."""
    return "?;#" if server.name == "wsgidav" else ""


@pytest.fixture
async def store(server: Server, fresh: str):
    store = open_store(Uri("webdav", server.address, fresh), CONFIG, LIMITS)
    yield store
    await store.close()


@pytest.fixture
def put(store, server: Server, fresh: str, refused_characters: str):
    """For what the connection pool requests; names that the server cannot move to are written to its disk."""

    async def put(name: str, data: bytes) -> None:
        if not any(character in name for character in refused_characters):
            await store.write(name, data)
            return
        path = server.files / fresh / name
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(path.write_bytes, data)

    return put


async def test_many_stores_create_one_file_each_time(server: Server, fresh: str) -> None:
    """Without locks, several won at WsgiDAV, about once in 60 times."""
    uri = Uri("webdav", server.address, fresh)
    stores = [open_store(uri, CONFIG, LIMITS) for _ in range(6)]
    for number in range(10):
        writes = (store.write(f"c/{number}", b"x" * i, WriteMode.CREATE) for i, store in enumerate(stores))
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert results.count(None) == 1, results
        assert all(result is None or isinstance(result, AlreadyExists | Unavailable) for result in results)
    assert len([entry async for entry in stores[0].entries()]) == 10
    for store in stores:
        await store.close()


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({}, CredentialsMissing, "Set WEBDAV_USERNAME and WEBDAV_PASSWORD"),
        ({**KEYS, "WEBDAV_PASSWORD": "other"}, AccessDenied, r"rejects the credentials .*WEBDAV_PASSWORD"),
    ],
)
async def test_wrong_credentials_are_named(server: Server, keys, error: type, message: str) -> None:
    store = open_store(Uri("webdav", server.address), StoreConfig(credentials=keys), LIMITS)
    for call in (store.stat("a"), store.children(), store.read("a"), store.write("a", b"1")):
        with pytest.raises(error, match=message):
            await call
    await store.close()


async def test_a_web_server_without_webdav_is_named(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    with nginx(tmp_path, tmp_path / "own") as address:
        store = open_store(Uri("webdav", address), CONFIG, LIMITS)
        with pytest.raises(InvalidSpec, match=r"not respond as a WebDAV server .*HTTP 405"):
            await store.children()
        await store.close()


async def test_a_cut_in_the_middle_is_resumed(server: Server, store, fresh: str, tmp_path: Path) -> None:
    data = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(1 << 20))
    await store.write(
        "d/large", iter(data[start : start + (1 << 20)] for start in range(0, len(data), 1 << 20))
    )
    async with cut_relay(server.address, after=3 << 20, cuts=2) as relay:
        uri = Uri("webdav", relay.address, f"{fresh}/d")
        assert await staged(str(uri), CONFIG, tmp_path) == {"large": data}
    assert relay.cuts == 0
    assert relay.passed < 2 * len(data), "what had arrived was not sent again"


FORMS = tuple(normalize(form, "Ä.bin") for form in ("NFC", "NFD"))


@pytest.mark.parametrize("mode", WriteMode)
async def test_two_forms_of_a_name_never_replace_each_other(store, server: Server, mode: WriteMode) -> None:
    """rclone takes them for one file, WsgiDAV for two."""
    for first, second in (FORMS, FORMS[::-1]):
        top = f"{mode.name}-{len(ascii(first))}"
        await store.write(f"{top}/{first}", b"1", mode)
        await store.write(f"{top}/d-{first}/a", b"1", mode)
        for name in (second, f"d-{second}/a"):
            with _refused(server.name == "rclone", "only in Unicode form"):
                await store.write(f"{top}/{name}", b"2", mode)
        assert bytes(await store.read(f"{top}/{first}")) == b"1"
        await store.write(f"{top}/{first}", b"3")
        assert bytes(await store.read(f"{top}/{first}")) == b"3"


@pytest.fixture
async def caseless(tmp_path: Path):
    """A store whose server does not distinguish upper and lower case."""
    files, own = tmp_path / "files", tmp_path / "own"
    files.mkdir()
    own.mkdir()
    with rclone_webdav(files, own, "--vfs-case-insensitive") as address:
        store = open_store(Uri("webdav", address, "x"), CONFIG, LIMITS)
        yield store
        await store.close()


@pytest.mark.parametrize("mode", WriteMode)
async def test_names_that_differ_only_in_case_never_replace_each_other(caseless, mode: WriteMode) -> None:
    for name in ("Model.pt", "Dir/a"):
        await caseless.write(name, b"1", mode)
    for name, other in (("model.pt", "Model.pt"), ("dir/b", "Dir"), ("DIR/a", "Dir")):
        with _refused(True, rf"{name} .* only in case .*\({other}\)"):
            await caseless.write(name, b"2", mode)
    assert sorted([entry.name async for entry in caseless.entries()]) == ["Dir/a", "Model.pt"]
    await caseless.write("Model.pt", b"3")
    assert bytes(await caseless.read("Model.pt")) == b"3"


async def test_nor_do_parallel_writes(caseless) -> None:
    names = [f"{number}/{name}" for number in range(4) for name in ("Loss.csv", "loss.csv")]
    writes = (caseless.write(name, name.encode()) for name in names)
    done = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(one) for one in done if one is not None] == [InvalidSpec] * 4
    kept = [name for name, one in zip(names, done, strict=True) if one is None]
    assert {name: bytes(await caseless.read(name)) for name in kept} == {name: name.encode() for name in kept}


def _refused(is_refused: bool, words: str):
    return pytest.raises(InvalidSpec, match=words) if is_refused else contextlib.nullcontext()

"""A directory that a server refuses to list is an error, never a dataset without it; links and odd names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module  # what only these tests need is not installed for the others
from pathlib import Path

import pytest

from podferry.contract.errors import AccessDenied, FerryError, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import Store, StoreConfig
from tests.support.client_connections import client_connections

CONFIG = StoreConfig(
    credentials={
        "FTP_USERNAME": "user",
        "FTP_PASSWORD": "password",
        "SFTP_USERNAME": "user",
        "SFTP_PASSWORD": "password",
        "SFTP_INSECURE_IGNORE_HOST_KEY": "true",
    }
)
ODD = "o d#d?/x#y?z %20&a:b+c"
FILES = {"a": 1, ODD: 22, "sub/b": 333, "sub/deep/c": 4444}


class Served:
    """A folder behind a server.

    Attributes:
        folder: The server's root.
        uri: Of its directory `set`.
        refused: Names of directories that may not be listed.
    """

    def __init__(self, folder: Path, uri: str, refused: set[str]) -> None:
        self.folder, self.uri, self.refused = folder, uri, refused

    def open(self, path: str = "") -> Store:
        return open_store(parse_uri(self.uri) / path, CONFIG)


@contextmanager
def sftp(folder: Path) -> Iterator[Served]:
    refused: set[str] = set()
    with import_module("tests.support.sftp_server").serving(folder, refused) as address:
        yield Served(folder, f"sftp://{address}/set", refused)


@contextmanager
def ftp(folder: Path, *commands: str) -> Iterator[Served]:
    refused: set[str] = set()
    with import_module("tests.support.ftp_server").serving(folder, refused, commands) as address:
        yield Served(folder, f"ftp://{address}/set", refused)


@contextmanager
def ftp_without_mlsd(folder: Path) -> Iterator[Served]:
    with ftp(folder, "MLSD", "MLST") as served:
        yield served


@pytest.fixture(params=[sftp, ftp, ftp_without_mlsd])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    for name, size in FILES.items():
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    with request.param(tmp_path) as found:
        yield found


async def listed(store: Store) -> dict[str, int]:
    try:
        found = {entry.name: entry.size async for entry in store.entries()}
        assert {name: len(await store.read(name)) for name in found} == found
        assert await store.children() == sorted(
            {name.partition("/")[0] + ("/" if "/" in name else "") for name in found}
        )
        return found
    finally:
        await store.close()


async def test_all_names_are_listed_and_read(served: Served) -> None:
    assert await listed(served.open()) == FILES


@pytest.mark.parametrize("refused", ["sub", "deep"])
async def test_a_directory_that_may_not_be_listed_is_named(served: Served, refused: str) -> None:
    served.refused.add(refused)
    with pytest.raises(FerryError, match=refused):
        await listed(served.open())
    with pytest.raises(FerryError, match=refused):
        await open_dataset(parse_uri(served.uri), CONFIG)
    served.refused.clear()
    assert await listed(served.open()) == FILES


async def test_the_dataset_itself_may_not_be_listed(served: Served) -> None:
    served.refused.add("set")
    with pytest.raises(AccessDenied, match="denies access"):
        await listed(served.open())
    with pytest.raises(AccessDenied, match="denies access"):
        await open_dataset(parse_uri(served.uri), CONFIG)


@pytest.mark.parametrize("name", ["none", "none/below", "a", "a/below"])
async def test_what_is_no_directory_is_empty(served: Served, name: str) -> None:
    assert await listed(served.open(name)) == {}


async def test_a_missing_dataset_is_empty_and_similar_ones_are_suggested(served: Served) -> None:
    with pytest.raises(NotFound, match=r"the dataset is empty.*/set/sub"):
        await open_dataset(parse_uri(served.uri) / "subb", CONFIG)


async def test_links_are_followed_but_not_upwards(served: Served) -> None:
    (served.folder / "set/link").symlink_to("a")
    (served.folder / "set/other").symlink_to("sub/deep")
    found = FILES | {"link": 1, "other/c": 4444}
    if served.uri.startswith("sftp"):  # FTP does not show where a link leads to
        (served.folder / "set/sub/up").symlink_to("..")
        (served.folder / "set/sub/self").symlink_to(".")
    assert await listed(served.open()) == found


@pytest.mark.parametrize("served", [sftp, ftp_without_mlsd], indirect=True)  # MLSD hides it at this server
async def test_a_dangling_link_is_named(served: Served) -> None:
    (served.folder / "set/sub/gone").symlink_to("nowhere")
    with pytest.raises(FerryError, match="gone"):
        await listed(served.open())


async def test_a_closed_store_leaves_no_connection(served: Served) -> None:
    port = int(served.uri.split(":")[2].partition("/")[0])
    store = served.open()
    await store.children()
    assert client_connections(port) == 1
    await store.close()
    assert client_connections(port) == 0


@pytest.mark.parametrize("serving", [sftp, ftp, ftp_without_mlsd])
async def test_a_server_that_stops_is_neither_empty_nor_without_the_file(serving, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/a").write_bytes(b"12345")
    with serving(tmp_path) as served:
        store = served.open()
        assert await store.children() == ["a"]
    for call in (store.stat("a"), store.read("a"), store.read("a", 1, 2), store.children(), names(store)):
        with pytest.raises(Unavailable):
            await call
    await store.close()


async def names(store: Store) -> list[str]:
    return [entry.name async for entry in store.entries()]

"""The contract on Apache Hadoop, by both protocols."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

import pytest

from podferry.contract.errors import (
    AccessDenied,
    FerryError,
    InvalidSpec,
    NotFound,
    Unavailable,
)
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.contract_suite.store import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import Store, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import Limits
from tests.support.client_connections import client_connections
from tests.support.hadoop import Hadoop

SCHEMES = ("hdfs", "webhdfs")
LIMITS = Limits(retries=1, retry_seconds=5)
Opened = Callable[..., Store]


def address(found: Hadoop, scheme: str) -> str:
    return found.address if scheme == "hdfs" else found.web


@pytest.fixture(params=SCHEMES)
async def opened(request: pytest.FixtureRequest, hadoop: Hadoop):
    """Opens a store at a path; closes all of them."""
    stores = []

    def opened(path: str, **variables: str) -> Store:
        uri = Uri(request.param, address(hadoop, request.param), path)
        stores.append(open_store(uri, StoreConfig(credentials=variables), LIMITS))
        return stores[-1]

    yield opened
    for store in stores:
        await store.close()


@pytest.fixture
def store(opened: Opened, fresh: str) -> Store:
    return opened(fresh)


async def failure(call) -> FerryError:
    with pytest.raises(FerryError) as caught:
        await call
    return caught.value


async def test_listings_are_paged(store: Store) -> None:
    for start in range(0, 1103, 64):
        await asyncio.gather(*(store.write(f"p/{i:04}", b"") for i in range(start, min(start + 64, 1103))))
    assert len([entry async for entry in store.entries()]) == 1103
    assert await store.children("p") == [f"{i:04}" for i in range(1103)]


async def test_a_file_of_several_blocks(hadoop: Hadoop, store: Store) -> None:
    hadoop.shell("-mkdir", "-p", f"/{store.uri.key}")
    data = os.urandom(3 << 20)
    file = hadoop.configuration / "blocks"
    file.write_bytes(data)
    hadoop.shell("-D", "dfs.blocksize=1048576", "-put", str(file), f"/{store.uri.key}/big")
    assert bytes(await store.read("big")) == data
    assert bytes(await store.read("big", (1 << 20) - 3, (1 << 20) + 6)) == data[(1 << 20) - 3 : (2 << 20) + 3]


async def test_what_a_crash_left_is_not_listed(hadoop: Hadoop, store: Store) -> None:
    await store.write("a", b"1")
    hadoop.shell("-touchz", f"/{store.uri.key}/.podferry-{'0' * 16}.tmp")
    assert await names(store) == ["a"]  # noqa: F405
    assert await store.children() == ["a"]


async def test_a_directory_that_may_not_be_listed_is_named(
    hadoop: Hadoop, opened: Opened, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = opened(fresh)
    for name in ("a", "sub/b", "sub/deep/c"):
        await owner.write(name, b"1")
    hadoop.shell("-chmod", "711", f"/{fresh}/sub")
    other = await as_nobody(opened, fresh, monkeypatch)
    for call in (names(other), open_dataset(other.uri, StoreConfig(credentials=NOBODY))):  # noqa: F405
        error = await failure(call)
        assert isinstance(error, AccessDenied)
        assert f"/{fresh}/sub" in str(error)
        assert "user=nobody, access=READ_EXECUTE" in str(error)
    assert bytes(await other.read("sub/b")) == b"1"
    error = await failure(other.write("sub/x", b"1"))
    assert "access=WRITE" in str(error)
    assert "HADOOP_USER_NAME" in str(error)
    hadoop.shell("-chmod", "755", f"/{fresh}/sub")
    assert await names(other) == ["a", "sub/b", "sub/deep/c"]  # noqa: F405


NOBODY = {"HADOOP_USER_NAME": "nobody"}


async def as_nobody(opened: Opened, path: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store as another user: of hdfs-native the user of the process, until the test ends."""
    monkeypatch.setattr("podferry.storage.hdfs.process_identity._used", {})
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody")
    store = opened(path, **NOBODY)
    await store.stat("a")
    return store


async def test_a_missing_dataset_is_empty(store: Store) -> None:
    await store.write("sub/a", b"1")
    with pytest.raises(NotFound, match=r"the dataset is empty.*/sub"):
        await open_dataset(store.uri / "subb", StoreConfig())


async def test_safe_mode_is_named(hadoop: Hadoop, store: Store) -> None:
    await store.write("a", b"1")
    hadoop.admin("-safemode", "enter")
    try:
        error = await failure(store.write("b", b"2"))
        assert isinstance(error, Unavailable)
        assert "is in safe mode" in str(error)
        assert bytes(await store.read("a")) == b"1"
    finally:
        hadoop.admin("-safemode", "leave")
    await store.write("b", b"2")


async def test_quotas_are_named(hadoop: Hadoop, store: Store) -> None:
    await store.write("files/a", b"1")
    await store.write("bytes/a", b"1")
    hadoop.admin("-setQuota", "2", f"/{store.uri.key}/files")
    hadoop.admin("-setSpaceQuota", "1m", f"/{store.uri.key}/bytes")
    for name in ("files/b", "bytes/b"):
        error = await failure(store.write(name, b"1" * 100))
        assert isinstance(error, Unavailable), name
        assert "quota" in str(error)
        assert "-setSpaceQuota" in str(error)


@pytest.mark.parametrize("name", ["x" * 256, "a/below", "a:b"])
async def test_names_that_hdfs_refuses(store: Store, name: str) -> None:
    await store.write("a", b"1")
    assert isinstance(await failure(store.write(name, b"1")), InvalidSpec)
    await store.write("x" * 255, b"1")
    assert await names(store) == ["a", "x" * 255]  # noqa: F405


async def test_a_name_that_is_a_directory_is_not_replaced(store: Store) -> None:
    await store.write("d/a", b"1")
    for mode in WriteMode:
        assert not isinstance(await failure(store.write("d", b"1", mode)), NotFound)
    assert await names(store) == ["d/a"]  # noqa: F405


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("host", "measured"), [("127.0.0.1:1", "refused"), ("no-such-host.invalid:8020", "not known")]
)
async def test_a_wrong_host_is_named(scheme: str, host: str, measured: str) -> None:
    store = open_store(parse_uri(f"{scheme}://{host}/x"), StoreConfig(), LIMITS)
    error = await failure(store.children())
    assert isinstance(error, Unavailable)
    assert measured in str(error)
    await store.close()


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_the_other_protocols_port_is_named(hadoop: Hadoop, scheme: str) -> None:
    other = hadoop.web if scheme == "hdfs" else hadoop.address
    limits = Limits(retries=0, retry_seconds=1, stall_seconds=5, connect_seconds=1)
    store = open_store(parse_uri(f"{scheme}://{other}/x"), StoreConfig(), limits)
    error = await failure(store.stat("a"))
    assert isinstance(error, Unavailable if scheme == "hdfs" else InvalidSpec)
    assert other in str(error)
    await store.close()


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_server_that_does_not_respond_blocks_no_later_call(scheme: str) -> None:
    limits = Limits(retries=0, retry_seconds=0, stall_seconds=0.5, connect_seconds=0.5, worker_threads=2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        store = open_store(parse_uri(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/x"), limits=limits)
        for _ in range(2):
            calls = (store.stat("a"), store.children(), store.stat("b"))
            for error in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(error, Unavailable), error
        await store.close()


async def test_an_unknown_nameservice_is_named() -> None:
    store = open_store(parse_uri("hdfs://no-such-cluster/x"), StoreConfig(), LIMITS)
    error = await failure(store.children())
    assert isinstance(error, Unavailable)
    assert "nameservice" in str(error)
    assert "HADOOP_CONF_DIR" in str(error)
    await store.close()


async def test_a_closed_store_leaves_no_connection(hadoop: Hadoop, opened: Opened, fresh: str) -> None:
    store = opened(fresh)
    await store.write("a", b"1")
    port = int(address(hadoop, store.uri.scheme).rpartition(":")[2])
    before = client_connections(port)
    await store.close()
    assert client_connections(port) < before

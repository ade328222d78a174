"""A JuiceFS volume: the contract on its mount, and its S3 server as a source."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from podferry.contract.errors import Refused
from podferry.contract.uri import Uri, parse_uri
from podferry.sidecar.checkpoint.commit.conditional_create import create_checked
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.contract_suite.store import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.juicefs import VOLUME, format_volume, gateway, mounted

KEY, SECRET = "key-of-tests", "secret-of-tests"
LIMITS = Limits(retries=1, retry_seconds=5, part_bytes=5 << 20)
# Its mount has no file for a moment while one is replaced.
test_who_names_no_version_reads_one_while_it_is_replaced = None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("juicefs")


@pytest.fixture(scope="module")
def volume(folder: Path) -> str:
    return format_volume(folder)


@pytest.fixture(scope="module")
def mount(folder: Path, volume: str) -> Iterator[Path]:
    with mounted(folder, volume) as point:
        yield point


@pytest.fixture
async def store(mount: Path, fresh: str) -> AsyncIterator[Store]:
    """A directory that does not exist yet."""
    store = open_store(Uri("file", "", f"{mount}/{fresh}".strip("/")), limits=LIMITS)
    yield store
    await store.close()


@pytest.fixture
def served(folder: Path, volume: str) -> Iterator[StoreConfig]:
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with gateway(folder, volume, KEY, SECRET) as endpoint:
        yield StoreConfig(endpoint=endpoint, credentials=keys)


async def test_files_of_juicefs_itself_are_no_part_of_a_dataset(mount: Path) -> None:
    (mount / "a").write_bytes(b"a")
    assert (mount / ".stats").exists()
    async with contextlib.aclosing(open_store(parse_uri(str(mount))).entries()) as entries:
        assert "a" in (found := [entry.name async for entry in entries])
    assert not [name for name in found if name.startswith((".stats", ".config", ".accesslog", ".trash"))]


async def test_a_dataset_is_read_from_the_gateway_and_commits_are_refused(
    mount: Path, served: StoreConfig
) -> None:
    (mount / "set/d").mkdir(parents=True)
    (mount / "set/d/x.bin").write_bytes(b"0123456789")
    store = open_store(Uri("s3", VOLUME, "set"), served, LIMITS)
    assert [entry.name async for entry in store.entries()] == ["d/x.bin"]
    assert bytes(await store.read("d/x.bin", 2, 3)) == b"234"
    with pytest.raises(Refused, match="replaces an object that it should only create"):
        await create_checked(LineageStore(store, "run"), "commits/1", b"x")
    await store.close()

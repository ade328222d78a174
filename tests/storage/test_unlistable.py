"""A directory that cannot be listed is an error for every engine: never a shorter listing, nor an empty one.

FTP and SFTP: `tests/servers/test_unlistable.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from podferry.contract.errors import FerryError, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.memory.store import CONTENTS, Content, Fault
from podferry.storage.store import Store, StoreConfig
from tests.support.listing_servers import NAMES, ListingServer

S3_KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
AZURE_KEYS = {"AZURE_STORAGE_ACCOUNT_NAME": "k", "AZURE_STORAGE_ACCOUNT_KEY": "b3RoZXI="}
COMPLETE = ["a", "sub/b", "sub/c"]


class Site:
    """A dataset `d` whose directory `sub` cannot be listed until `mend` is called."""

    def __init__(self, uri: str, mend: Callable[[], None], config: StoreConfig = StoreConfig()) -> None:  # noqa: B008
        self.uri, self.mend, self.config = parse_uri(uri), mend, config


def memory() -> Site:
    content = CONTENTS["unlistable"] = Content()
    content.objects = dict.fromkeys(NAMES, b"1")
    error = Unavailable.of("the store does not respond", "", "Try again")
    content.faults = [Fault(call, times=99, error=error) for call in ("entries", "children")]
    return Site("memory://unlistable/d", content.faults.clear)


def written(folder: Path) -> None:
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"1")


def local(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    written(folder)
    scandir, refused = os.scandir, {"sub"}

    def scan(path: Path):
        if Path(path).name in refused:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    return Site(f"{folder}/d", refused.clear)


def fsspec_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    written(folder)
    ls, refused = LocalFileSystem.ls, {"sub"}

    def listed(self: LocalFileSystem, path: str, detail: bool = False):
        if Path(path).name in refused:
            raise OSError(5, "Input/output error", path)
        return ls(self, path, detail)

    monkeypatch.setattr(LocalFileSystem, "ls", listed)
    return Site(f"file://{folder}/d?engine=fsspec", refused.clear)


async def served(kind: str, answering) -> Site:
    server = ListingServer()
    engine, _, scheme = kind.partition(" ")
    handlers = {"s3": server.s3, "az": server.azure, "http": server.index, "webdav": server.webdav}
    endpoint = await answering(handlers[scheme])

    def mend() -> None:
        server.refused = False

    if scheme in {"http", "webdav"}:
        return Site(f"{endpoint.replace('http', scheme)}/d", mend)
    keys = AZURE_KEYS if scheme == "az" else S3_KEYS
    config = StoreConfig(endpoint=f"{endpoint}/k" if scheme == "az" else endpoint, credentials=keys)
    return Site(f"{scheme}://bucket/d?engine={engine}", mend, config)


KINDS = [
    "memory",
    "local",
    "fsspec file",
    "obstore s3",
    "obstore az",
    "fsspec s3",
    "web http",
    "webdav webdav",
]


@pytest.fixture(params=KINDS)
async def site(request, answering, tmp_path, monkeypatch) -> Site:
    if request.param == "memory":
        return memory()
    if request.param == "local":
        return local(tmp_path, monkeypatch)
    if request.param == "fsspec file":
        return fsspec_file(tmp_path, monkeypatch)
    return await served(request.param, answering)


async def names(store: Store) -> list[str]:
    return sorted([entry.name async for entry in store.entries()])


async def test_it_is_an_error_until_it_is_complete(site: Site, quick) -> None:
    store = open_store(site.uri, site.config, quick)
    for call in (names(store), store.children("sub"), open_dataset(site.uri, site.config)):
        with pytest.raises(FerryError) as caught:
            await call
        assert not isinstance(caught.value, NotFound), "it is not missing, and the dataset is not empty"
    site.mend()
    assert await names(store) == COMPLETE
    assert await store.children("sub") == ["b", "c"]
    dataset = await open_dataset(site.uri, site.config)
    assert [entry.name for entry in dataset.manifest.entries] == COMPLETE
    await dataset.store.close()
    await store.close()


def test_every_engine_is_here() -> None:
    assert {kind.split()[0] for kind in KINDS} == {"memory", "local", "fsspec", "obstore", "web", "webdav"}

from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from podferry.contract.errors import AlreadyExists, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig, WriteMode


class Refusing(MemoryFileSystem):
    """Refuses to rename to a name that is taken."""

    protocol = "refusing"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    def mv(self, path1, path2, **kwargs):
        if self.exists(path2):
            raise OSError("taken")
        super().mv(path1, path2, **kwargs)

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        """Refuses a taken name with an unspecific error, as s3fs does at MinIO."""
        if mode == "create" and self.exists(path):
            raise OSError("refused")
        super().pipe_file(path, value, **kwargs)


@pytest.fixture(autouse=True)
def registered():
    fsspec.register_implementation(Refusing.protocol, Refusing, clobber=True)


async def test_a_taken_name_is_replaced_if_renaming_refuses_it():
    store = open_store(parse_uri("refusing://x/y"))
    await store.write("a", b"old")
    await store.write("a", b"new")
    assert bytes(await store.read("a")) == b"new"
    assert [entry.name async for entry in store.entries()] == ["a"]


async def test_a_taken_name_is_recognized_behind_an_unspecific_error(monkeypatch):
    monkeypatch.setattr("podferry.storage.fsspec.writes.EXCLUSIVE_CREATE_SCHEMES", {"refusing"})
    store = open_store(parse_uri("refusing://x/z"))
    await store.write("a", b"old", WriteMode.CREATE)
    with pytest.raises(AlreadyExists):
        await store.write("a", b"newer", WriteMode.CREATE)
    with pytest.raises(Unavailable):  # of the same size: perhaps the response to this write was lost
        await store.write("a", b"new", WriteMode.CREATE)
    assert bytes(await store.read("a")) == b"old"


def test_exclusive_create_is_claimed_only_if_tested():
    for uri, exclusive in (("memory://x?engine=fsspec", False), ("s3://b?engine=fsspec", True)):
        config = StoreConfig(credentials={"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"})
        assert open_store(parse_uri(uri), config).exclusive_create is exclusive

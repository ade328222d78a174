from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig


class Refusing(MemoryFileSystem):
    """Refuses to rename to a name that is taken, as HDFS does."""

    protocol = "refusing"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    def mv(self, path1, path2, **kwargs):
        if self.exists(path2):
            raise OSError("taken")
        super().mv(path1, path2, **kwargs)


@pytest.fixture(autouse=True)
def registered():
    fsspec.register_implementation(Refusing.protocol, Refusing, clobber=True)


async def test_a_taken_name_is_replaced_if_renaming_refuses_it():
    store = open_store(parse_uri("refusing://x/y"))
    await store.write("a", b"old")
    await store.write("a", b"new")
    assert bytes(await store.read("a")) == b"new"
    assert [entry.name async for entry in store.entries()] == ["a"]


def test_exclusive_create_is_claimed_only_if_tested():
    for uri, exclusive in (("memory://x?engine=fsspec", False), ("s3://b?engine=fsspec", True)):
        config = StoreConfig(credentials={"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"})
        assert open_store(parse_uri(uri), config).exclusive_create is exclusive

"""Opening file systems: options that they do not know, and caches."""

from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig


class Strict(MemoryFileSystem):
    """Forwards its options to a client that knows only one."""

    protocol = "strict"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    def __init__(self, skip_instance_cache=True, **options):
        super().__init__()
        self.connect(**options)

    def connect(self, host=""):
        self.host = host


@pytest.fixture(autouse=True)
def registered():
    fsspec.register_implementation("strict", Strict, clobber=True)


async def test_a_file_system_gets_only_options_that_it_knows():
    store = open_store(parse_uri("strict://x/y"))
    await store.write("a", b"0")
    assert await store.children() == ["a"]
    await store.write("b", b"1")
    assert await store.children() == ["a", "b"], "no listing is cached"


async def test_an_option_that_a_file_system_does_not_know_is_named():
    store = open_store(
        parse_uri("strict://x/y"), StoreConfig(credentials={"FSSPEC_STRICT_PASWORD": "secret"})
    )
    with pytest.raises(
        InvalidSpec, match=r"strict:// does not accept its options .*pasword.*FSSPEC_STRICT_"
    ) as caught:
        await store.children()
    assert "secret" not in str(caught.value)

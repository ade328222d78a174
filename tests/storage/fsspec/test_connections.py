"""Opening file systems: options that they do not know, caches, and names that are not URLs."""

from importlib import import_module
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.fsspec.connections import close_file_system, open_file_system
from podferry.storage.store import StoreConfig


class Strict(MemoryFileSystem):
    """Forwards its options to a client that knows only one, as fsspec's SFTP and HDFS do."""

    protocol = "strict"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    def __init__(self, skip_instance_cache=True, **options):
        super().__init__()
        self.connect(**options)

    def connect(self, host=""):
        self.host = host


class Hdfs(MemoryFileSystem):
    """Reads each path as a URL, as hdfs-native does."""

    protocol = "hdfs"

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.partition("?")[0].partition("#")[0])


class Closing:
    """A file system, or a connection of it, that fails when it is closed."""

    async_impl = False

    def __init__(self, **connections):
        self.closed = False
        self.__dict__.update(connections)

    def close(self):
        self.closed = True
        raise OSError


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


def test_names_are_not_cut_at_characters_that_urls_give_a_meaning(monkeypatch):
    monkeypatch.setitem(import_module("fsspec.registry")._registry, "hdfs", Hdfs)
    file_system, _ = open_file_system(parse_uri("hdfs://host/x"), {})
    assert file_system._strip_protocol("/a#b?c") == "/a#b?c"
    assert file_system._strip_protocol is not Hdfs._strip_protocol, "only this one is changed"


def test_all_connections_are_closed_even_if_one_fails():
    connections = Closing(), Closing()
    close_file_system(Closing(ftp=connections[0], client=connections[1]))
    assert all(connection.closed for connection in connections)
    close_file_system(object())

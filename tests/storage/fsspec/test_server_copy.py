import base64
import hashlib
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from podferry.contract.errors import Corrupt, NotFound
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.fsspec.options import GOOGLE_SCHEMES
from podferry.storage.fsspec.server_copy import SERVER_COPY_SCHEMES


class Copying(MemoryFileSystem):
    """A file system that states checksums; a test may damage its copies."""

    protocol = "copying"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]
    damage: ClassVar = b""

    def info(self, path, **kwargs):
        found = super().info(path, **kwargs)
        if found["type"] == "directory":
            return found
        digest = hashlib.md5(self.cat_file(path), usedforsecurity=False).digest()
        return {**found, "md5Hash": base64.b64encode(digest).decode()}

    def cp_file(self, path1, path2, **kwargs):
        self.pipe_file(path2, self.damage or self.cat_file(path1))


@pytest.fixture
def store(monkeypatch):
    fsspec.register_implementation(Copying.protocol, Copying, clobber=True)
    monkeypatch.setattr("podferry.storage.fsspec.store.SERVER_COPY_SCHEMES", {"copying"})
    return open_store(parse_uri("copying://x/y"))


async def test_the_file_system_copies(store):
    await store.write("a", b"1234")
    await store.server_copy.copy("a", "d/b")
    assert bytes(await store.read("d/b")) == b"1234"
    for name in ("none", "d"):
        with pytest.raises(NotFound):
            await store.server_copy.copy(name, "c")


@pytest.mark.parametrize(("damage", "said"), [(b"12", "2 bytes"), (b"4321", "md5 ")])
async def test_a_copy_that_differs_is_noticed(store, monkeypatch, damage, said):
    await store.write("a", b"1234")
    monkeypatch.setattr(Copying, "damage", damage)
    with pytest.raises(Corrupt, match=said):
        await store.server_copy.copy("a", "b")


def test_only_google_copies_itself():
    assert set(SERVER_COPY_SCHEMES) == set(GOOGLE_SCHEMES)
    assert open_store(parse_uri("memory://b?engine=fsspec")).server_copy is None

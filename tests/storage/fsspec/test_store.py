import asyncio
import threading
from typing import ClassVar

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from podferry.contract.errors import Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.patience import PATIENCE


class Stuck(MemoryFileSystem):
    """Never returns."""

    protocol = "stuck"
    release = None

    def info(self, path, **kwargs):
        self.release.wait(PATIENCE)
        raise FileNotFoundError(path)


@pytest.fixture(autouse=True)
def registered():
    fsspec.register_implementation(Stuck.protocol, Stuck, clobber=True)


async def test_a_file_system_that_never_responds_is_unavailable(quick):
    Stuck.release = threading.Event()
    store = open_store(parse_uri("stuck://x/y"), limits=quick)
    store._call_seconds = 0.2
    with pytest.raises(Unavailable):
        await store.stat("a")
    Stuck.release.set()
    await store.close()


async def test_many_calls_at_once_on_one_thread():
    store = open_store(parse_uri("memory://x/many?engine=fsspec"))
    await asyncio.gather(*(store.write(f"{i}", b"x") for i in range(16)))
    assert len(await store.children()) == 16


class Sessioned(MemoryFileSystem):
    """Has its own kind of session, not on fsspec's loop."""

    protocol = "sessioned"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]
    _session = object()


class Failing(AsyncFileSystem):
    """Its session cannot be closed."""

    protocol = "failing"

    class _session:  # noqa: N801
        @staticmethod
        async def __aexit__(*_):
            raise OSError("no end")

    async def _info(self, path, **kwargs):
        return {"name": path, "size": 1, "type": "file"}


@pytest.mark.parametrize("kind", [Sessioned, Failing])
async def test_closing_never_fails(kind):
    """It is called in `finally`, where its error would hide another one."""
    fsspec.register_implementation(kind.protocol, kind, clobber=True)
    store = open_store(parse_uri(f"{kind.protocol}://b/x"), StoreConfig())
    await store.children()
    await store.close()

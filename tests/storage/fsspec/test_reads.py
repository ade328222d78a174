import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from podferry.contract.errors import Corrupt, InvalidSpec, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig


class CompleteFile(MemoryFileSystem):
    """Returns the complete file for a range."""

    protocol = "complete"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    def cat_file(self, path, start=None, end=None, **kwargs):
        return super().cat_file(path)


class Short(MemoryFileSystem):
    """Returns less than requested."""

    protocol = "short"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    def cat_file(self, path, start=None, end=None, **kwargs):
        return super().cat_file(path, start, end)[:1]


@pytest.fixture(autouse=True)
def registered():
    for kind in (CompleteFile, Short):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)


async def test_a_short_response_is_temporary():
    store = open_store(parse_uri("short://x/y"))
    await store.write("a", b"0123456789")
    with pytest.raises(Unavailable, match="1 bytes came; requested 5"):
        await store.read("a", 0, 5)
    with pytest.raises(Corrupt, match="ends before the requested bytes"):
        await store.read("a", 0, 11)


async def test_a_file_system_that_ignores_ranges_is_named():
    store = open_store(parse_uri("complete://x/y"))
    await store.write("a", b"0123456789")
    assert bytes(await store.read("a", 0, 10)) == b"0123456789"
    with pytest.raises(Corrupt, match="10 bytes came; requested 5"):
        await store.read("a", 0, 5)


@pytest.fixture
def web(tmp_path):
    """Files behind the standard library's HTTP server, which lists directories and ignores ranges."""
    handler = partial(QuietHandler, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


async def test_files_behind_a_web_server(web, tmp_path):
    (tmp_path / "set" / "deep").mkdir(parents=True)
    for name in ("a", "deep/odd #?%20 ü", "deep/b"):
        (tmp_path / "set" / name).write_bytes(b"0123456789")
    store = open_store(parse_uri(f"http://{web}/set"))
    listed = sorted([entry async for entry in store.entries()])
    assert [(entry.name, entry.size) for entry in listed] == [
        ("a", 10),
        ("deep/b", 10),
        ("deep/odd #?%20 ü", 10),
    ]
    assert await store.children() == ["a", "deep/"]
    assert bytes(await store.read("deep/odd #?%20 ü", 3, 4)) == b"3456"
    with pytest.raises(NotFound):
        await store.read("none")
    await store.close()


async def test_a_call_after_close_opens_no_file_system():
    store = open_store(parse_uri("memory://b/x?engine=fsspec"), StoreConfig())
    await store.children()
    reads = store._reads
    await store.close()
    with pytest.raises(InterruptedError, match="closed"):
        reads.path("a")


async def test_a_size_that_a_server_does_not_state_is_named(monkeypatch):
    store = open_store(parse_uri("short://x/y"))
    await store.write("a", b"0123456789")
    info = Short.info
    monkeypatch.setattr(Short, "info", lambda self, path, **kwargs: info(self, path) | {"size": None})
    with pytest.raises(InvalidSpec, match="does not state the size of short://x/y/a"):
        await store.stat("a")

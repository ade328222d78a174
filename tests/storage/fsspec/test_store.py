import asyncio
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from podferry.contract.errors import Corrupt, InvalidSpec, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.fsspec.options import options_for
from podferry.storage.limits import LIMITS
from podferry.storage.store import StoreConfig


class Inclusive(MemoryFileSystem):
    """Takes the end of a range as inclusive, as ossfs does."""

    protocol = "inclusive"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    def cat_file(self, path, start=None, end=None, **kwargs):
        return super().cat_file(path, start, None if end is None else end + 1)


class CompleteFile(MemoryFileSystem):
    """Returns the complete file for a range, as sshfs does."""

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


class Stuck(MemoryFileSystem):
    """Never returns."""

    protocol = "stuck"
    release = None

    def info(self, path, **kwargs):
        self.release.wait(20)
        raise FileNotFoundError(path)


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
    for kind in (Inclusive, CompleteFile, Short, Stuck, Refusing):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)


@pytest.mark.parametrize("scheme", ["inclusive", "complete"])
@pytest.mark.parametrize(("start", "length"), [(0, 3), (2, 5), (9, 1), (0, 10), (4, 0), (0, 9)])
async def test_ranges_are_exact_however_the_file_system_treats_their_end(scheme, start, length):
    store = open_store(parse_uri(f"{scheme}://x/y"))
    await store.write("a", b"0123456789")
    assert bytes(await store.read("a", start, length)) == b"0123456789"[start : start + length]
    with pytest.raises(Corrupt):
        await store.read("a", start, 11)


async def test_a_short_response_is_temporary():
    store = open_store(parse_uri("short://x/y"))
    await store.write("a", b"0123456789")
    with pytest.raises(Unavailable, match="1 bytes came; requested 5"):
        await store.read("a", 0, 5)


async def test_a_file_system_that_never_responds_is_unavailable(quick):
    Stuck.release = threading.Event()
    store = open_store(parse_uri("stuck://x/y"), limits=quick)
    store._call_seconds = 0.2
    with pytest.raises(Unavailable):
        await store.stat("a")
    Stuck.release.set()
    await store.close()


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


def test_a_password_in_a_uri_is_refused_and_not_printed():
    with pytest.raises(InvalidSpec, match="FSSPEC_SFTP_PASSWORD") as caught:
        options_for(parse_uri("sftp://user:hunter2@host/x"), StoreConfig(), LIMITS)
    assert "hunter2" not in str(caught.value)


def test_any_option_of_a_file_system_can_be_set():
    config = StoreConfig(credentials={"FSSPEC_SFTP_USERNAME": "u", "FSSPEC_SFTP_PORT": "2222", "OTHER": "x"})
    settings = options_for(parse_uri("sftp://host/x"), config, LIMITS)
    assert (settings.options["username"], settings.options["port"]) == ("u", 2222)
    assert settings.location.credentials == ("FSSPEC_SFTP_PORT", "FSSPEC_SFTP_USERNAME")


def test_options_do_not_print_values():
    config = StoreConfig(credentials={"AWS_ACCESS_KEY_ID": "kkkk", "AWS_SECRET_ACCESS_KEY": "ssss"})
    printed = repr(options_for(parse_uri("s3://b?engine=fsspec"), config, LIMITS))
    assert "kkkk" not in printed
    assert "ssss" not in printed


@pytest.mark.parametrize(
    ("held", "token"),
    [
        ({}, "google_default"),
        ({"GOOGLE_SKIP_SIGNATURE": "true"}, "anon"),
        ({"GOOGLE_APPLICATION_CREDENTIALS": "/key.json"}, "/key.json"),
        ({"GOOGLE_APPLICATION_CREDENTIALS": '{"type": "x"}'}, {"type": "x"}),
    ],
)
def test_google_credentials(held, token):
    settings = options_for(parse_uri("gs://b/x"), StoreConfig(credentials=held), LIMITS)
    assert settings.options["token"] == token


def test_a_malformed_google_key_is_refused_and_not_printed():
    config = StoreConfig(credentials={"GOOGLE_APPLICATION_CREDENTIALS": '{"private": "hunter2"'})
    with pytest.raises(InvalidSpec) as caught:
        options_for(parse_uri("gs://b/x"), config, LIMITS)
    assert "hunter2" not in str(caught.value)


async def test_many_calls_at_once_on_one_thread():
    store = open_store(parse_uri("refusing://x/many"))
    await asyncio.gather(*(store.write(f"{i}", b"x") for i in range(16)))
    assert len(await store.children()) == 16


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


class Sessioned(MemoryFileSystem):
    """Has its own kind of session, as ossfs does, not on fsspec's loop."""

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


async def test_a_call_after_close_opens_no_file_system():
    store = open_store(parse_uri("memory://b/x?engine=fsspec"), StoreConfig())
    await store.children()
    reads = store._reads
    await store.close()
    with pytest.raises(InterruptedError, match="closed"):
        reads.path("a")

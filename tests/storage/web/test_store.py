"""The store of a web server: its requests, and what it refuses. Listings are in `test_directory.py`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from aiohttp import web

from podferry.contract.errors import Changed, InvalidSpec, NotFound
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.factory import open_store
from podferry.storage.request_builder import Origin
from podferry.storage.store import StoreConfig
from podferry.storage.web.store import WebStore
from tests.support.web_server import Answer, ScriptedServer, file, moved

ENTRY = Entry("a b+%/ü", 10, '"t"')
SITE = {
    "/set": moved("/set/", 301),
    "/set/": Answer('<title>Index of /set/</title><a href="a">a</a><a href="sub/">sub/</a>'),
    "/set/a": file(),
    "/set/sub/": Answer('<a href="b">b</a>'),
    "/set/sub/b": file(7),
}


def lines_of(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    return first, {name: value for name, _, value in (line.partition(": ") for line in lines)}


def builder_for(uri: Uri, **held: str):
    return WebStore(uri, StoreConfig(credentials=held)).request_builder


def test_files_are_requested_unencoded() -> None:
    builder = builder_for(Uri("https", "data.example.com:8443", "set one"))
    first, sent = lines_of(builder.build(ENTRY, 0, 10))
    assert first == "GET /set%20one/a%20b%2B%25/%C3%BC HTTP/1.1"
    assert sent["Host"] == "data.example.com:8443"
    assert sent["Accept-Encoding"] == "identity"
    assert sent["If-Match"] == '"t"'
    assert builder.origin == Origin("data.example.com", 8443, tls=True, pages=True)


@pytest.mark.parametrize("bucket", ["user@host", "user:password@host"])
def test_a_user_does_not_belong_in_the_address(bucket: str) -> None:
    with pytest.raises(InvalidSpec, match="must not name a user") as caught:
        builder_for(Uri("http", bucket))
    assert "password" not in str(caught.value.problems[0].measured)


async def test_credentials_are_lines_of_the_request() -> None:
    builder = builder_for(Uri("https", "host"), username="u", password="p", HTTP_HEADERS="X-Key: k")
    await builder.prepare([ENTRY])
    _, sent = lines_of(builder.build(ENTRY, 0, 10))
    assert sent["Authorization"] == "Basic dTpw"
    assert sent["X-Key"] == "k"


async def test_it_is_read_only(answering) -> None:
    store = open_store(parse_uri(f"{await answering(ScriptedServer(SITE).handle)}/set"))
    for call in (store.write("a", b"x"), store.delete(["a"])):
        with pytest.raises(InvalidSpec, match="read only"):
            await call
    await store.close()


async def test_children_and_a_file(answering) -> None:
    store = open_store(parse_uri(f"{await answering(ScriptedServer(SITE).handle)}/set"))
    assert await store.children() == ["a", "sub/"]
    assert await store.children("sub") == ["b"]
    assert (await store.stat("a")).size == 5
    with pytest.raises(NotFound):
        await store.stat("missing")
    await store.close()


LISTS = """
import asyncio, sys
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store

async def main():
    store = open_store(parse_uri(sys.argv[1]))
    print(sorted([entry.name async for entry in store.entries()]), (await store.stat("a")).size)
    await store.close()

asyncio.run(main())
print({"aiohttp", "fsspec", "structlog", "yarl"} & set(sys.modules))
"""


async def test_a_server_may_send_a_large_header(answering) -> None:
    more = {"X-Policy": "a" * 40_000}

    async def respond(request):
        answer = SITE.get(request.path, Answer(status=404))
        headers = more | ({"Location": answer.location} if answer.location else {})
        return web.Response(
            body=answer.text, status=answer.status, content_type=answer.kind or None, headers=headers
        )

    store = open_store(parse_uri(f"{await answering(respond)}/set"))
    assert await store.children() == ["a", "sub/"]
    assert len(await store.read("a")) == (await store.stat("a")).size
    await store.close()


async def test_a_plain_listing_loads_no_general_client(answering) -> None:
    endpoint = await answering(ScriptedServer(SITE).handle)
    words = [sys.executable, "-c", LISTS, f"{endpoint}/set"]
    process = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    out, _ = await process.communicate()
    assert out.decode() == "['a', 'sub/b'] 5\nset()\n"


class Files(SimpleHTTPRequestHandler):
    """Python's own server, which sends `Last-Modified` and no ETag, and ignores ranges."""

    def log_message(self, *args: object) -> None:
        pass


@pytest.mark.parametrize("protocol", ["HTTP/1.0", "HTTP/1.1"])
async def test_a_change_that_keeps_the_size_is_seen_without_an_etag(tmp_path: Path, protocol: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    handler = type("Handler", (Files,), {"protocol_version": protocol})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, args=(0.01,)).start()
        store = open_store(parse_uri(f"http://127.0.0.1:{server.server_address[1]}"))
        (before,) = [entry async for entry in store.entries()]
        assert before == await store.stat("a") == Entry("a", 3, "Tue, 14 Nov 2023 22:13:20 GMT")
        assert bytes(await store.read("a", tag=before.tag, size=3)) == b"old"
        path.write_bytes(b"new")
        os.utime(path, (1_700_000_001, 1_700_000_001))
        with pytest.raises(Changed):
            await store.read("a", tag=before.tag, size=3)
        assert (await store.stat("a")).tag != before.tag
        await store.close()
        server.shutdown()

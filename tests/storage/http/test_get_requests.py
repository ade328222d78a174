"""Unsigned requests: against a web server, and with a token."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from podferry.contract.errors import CredentialsMissing
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.factory import open_store
from podferry.storage.http.get_requests import PlainGetBuilder, PlainRequest
from podferry.storage.request_builder import request_address
from tests.support.request_builder_contract import *  # noqa: F403


@pytest.fixture
async def served(tmp_path):
    """A web server that knows ranges and ETags, and lists directories."""
    app = web.Application()
    app.router.add_static("/", tmp_path, show_index=True)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def store(served, fresh):
    store = open_store(Uri("http", served, fresh))
    yield store
    await store.close()


@pytest.fixture
def put(tmp_path, fresh):
    async def put(name, data):
        path = tmp_path / fresh / name
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(path.write_bytes, data)

    return put


@pytest.fixture
def listed(store):
    return store.stat  # what a listing has for a file on a web server


@pytest.fixture
def remove(tmp_path, fresh):
    async def remove(names):
        for name in names:
            await asyncio.to_thread(Path(tmp_path / fresh / name).unlink)

    return remove


def lines_of(head):
    first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines)


def builder_of(**plain):
    return PlainGetBuilder(PlainRequest(request_address("http://127.0.0.1:1"), "/{}?x=1".format, **plain))


def test_a_request_has_the_lines_of_its_store():
    first, sent = lines_of(
        builder_of(lines="Accept-Encoding: identity\r\n").build(Entry("a", 9, '"t"'), 2, 3)
    )
    assert first == "GET /a?x=1 HTTP/1.1"
    assert sent.pop("User-Agent")
    assert sent == {
        "Host": "127.0.0.1:1",
        "Accept-Encoding": "identity",
        "Range": "bytes=2-4",
        "If-Match": '"t"',
    }
    first, sent = lines_of(builder_of(matches=False).build(Entry("a", 9, '"t"'), 0, 9, "HEAD"))
    assert first == "HEAD /a?x=1 HTTP/1.1"
    assert not {"Range", "If-Match"} & set(sent)


async def test_no_request_is_built_before_its_token_is_read():
    builder = builder_of(token=RefreshedValue(lambda: "Authorization: Bearer t\r\n"))
    with pytest.raises(CredentialsMissing, match="no token"):
        builder.build(Entry("a", 1), 0, 1)
    await builder.prepare([])
    assert lines_of(builder.build(Entry("a", 1), 0, 1))[1]["Authorization"] == "Bearer t"

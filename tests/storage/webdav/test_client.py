"""A listing is complete or an error that says what the server does: hostile and broken servers."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from podferry.contract.errors import (
    AccessDenied,
    Corrupt,
    CredentialsMissing,
    FerryError,
    InvalidSpec,
    TemporaryError,
    Throttled,
    Unavailable,
)
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import StoreConfig
from podferry.storage.webdav import client
from tests.support.dav_server import DavServer, Handler, directory, file, multistatus, refused

FILES = {"/d/a": b"1", "/d/sub/b#?%; +é": b"22", "/d/sub/deep/c": b"333"}


def site(answers: dict[str, Handler]) -> DavServer:
    server = DavServer(answers)
    server.files = dict(FILES)
    server.directories = {"/", "/d/", "/d/sub/", "/d/sub/deep/", "/d/empty/"}
    return server


@pytest.fixture
async def listed(answering):
    """Lists what a server with these answers, in addition to the usual ones, has below `/d`."""

    async def lists(answers: dict[str, Handler]) -> dict[str, int]:
        endpoint = await answering(site(answers).handle)
        dataset = await open_dataset(parse_uri(endpoint.replace("http", "webdav") + "/d"), StoreConfig())
        await dataset.store.close()
        return {entry.name: entry.size for entry in dataset.manifest.entries}

    return lists


def says(status: int, text: str = "", **headers: str) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=status, text=text, headers=headers)

    return handle


def lists(*responses: str) -> Handler:
    return says(207, multistatus(directory("/d/sub/"), *responses))


async def test_it_is_complete(listed) -> None:
    assert await listed({}) == {"a": 1, "sub/b#?%; +é": 2, "sub/deep/c": 3}


@pytest.mark.parametrize("prefix", ["http://elsewhere/", "http://127.0.0.1/", "/"])
async def test_addresses_may_be_urls_and_unencoded(listed, prefix: str) -> None:
    found = says(207, multistatus(directory(f"{prefix}d/sub"), file(f"{prefix}d/sub/a b", 4)))
    assert await listed({"PROPFIND /d/sub/": found}) == {"a": 1, "sub/a b": 4}


async def test_a_size_that_the_listing_lacks_is_asked_for(listed) -> None:
    answers = {
        "PROPFIND /d/sub/": lists(file("/d/sub/x", None)),
        "PROPFIND /d/sub/x": says(207, multistatus(file("/d/sub/x", 7))),
    }
    assert await listed(answers) == {"a": 1, "sub/x": 7}
    with pytest.raises(InvalidSpec, match=r"does not state the size of .*/d/sub/x"):
        await listed(answers | {"PROPFIND /d/sub/x": says(207, multistatus(file("/d/sub/x", None)))})


async def hangs(request: web.Request) -> web.Response:
    await asyncio.sleep(60)
    return web.Response()


async def resets(request: web.Request) -> web.Response:
    request.transport.abort()
    return web.Response()


async def cuts(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=207)
    response.content_length = 10_000
    await response.prepare(request)
    await response.write(multistatus(directory("/d/sub/"))[:90].encode())
    request.transport.close()
    return response


async def never_ends(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=207)
    await response.prepare(request)
    await response.write(b'<multistatus xmlns="DAV:">' + directory("/d/sub/").encode())
    for number in range(1 << 30):
        await response.write("".join(file(f"/d/sub/{number}-{i}") for i in range(500)).encode())
    return response


async def invents_directories(request: web.Request) -> web.Response:
    path = request.path.rstrip("/")
    return web.Response(status=207, text=multistatus(directory(f"{path}/"), directory(f"{path}/more/")))


@pytest.mark.parametrize(
    ("handler", "error", "message"),
    [
        (resets, TemporaryError, "sub"),
        (cuts, TemporaryError, r"/d/sub ends too early"),
        (says(503), TemporaryError, "sub"),
        (says(500), TemporaryError, "sub"),
        (says(429), Throttled, "sub"),
        (says(404), Unavailable, r"/d/sub is listed and cannot be opened"),
        (says(403), AccessDenied, r"denies access to .*/d/sub \(HTTP 403"),
        (says(401), CredentialsMissing, "WEBDAV_USERNAME"),
        (says(200, "<html/>"), InvalidSpec, r"not respond as a WebDAV server for .*/d/sub \(HTTP 200"),
        (says(405), InvalidSpec, "not respond as a WebDAV server"),
        (says(501), InvalidSpec, "not respond as a WebDAV server"),
        (says(207, "<html>login</html>"), InvalidSpec, "the element 'html', not multistatus"),
        (says(207, '<!DOCTYPE x [<!ENTITY a "b">]><x/>'), InvalidSpec, "a document type"),
        (says(207, multistatus()), Corrupt, r"not directly in .*/d/sub \(nothing comes first"),
        (says(207, multistatus(directory("/d/other/"))), Corrupt, "/d/other/ comes first"),
        (lists(file("/d/sub/x/y")), Corrupt, r"not directly in .*/d/sub \(/d/sub/x/y"),
        (lists(file("/d/other")), Corrupt, r"not directly in .*/d/sub \(/d/other"),
        (lists(file("/d/sub/../../etc/passwd")), FerryError, "passwd"),
        (lists(file("/d/sub/%2e%2e")), InvalidSpec, r"\.\."),
        (lists(file("/d/sub/x%0Ay")), InvalidSpec, "name"),
        (lists(file("/d/sub/%FF")), InvalidSpec, "not in UTF-8"),
        (lists(refused("/d/sub/x")), Unavailable, r"/d/sub/x is listed and cannot be opened \(HTTP 403"),
        (says(207, multistatus(refused("/d/sub/", 507))), Unavailable, "/d/sub is listed and cannot"),
        (
            says(207, multistatus(file("/d/sub"))),
            Unavailable,
            r"/d/sub is listed and cannot be opened \(a file",
        ),
        (never_ends, Corrupt, "has no end"),
        (invents_directories, Corrupt, "has no end"),
    ],
)
async def test_what_cannot_be_listed_is_named(
    listed, monkeypatch, handler: Handler, error: type, message: str
) -> None:
    monkeypatch.setattr(client, "MAX_LISTING_BYTES", 1 << 20)
    answers = {"PROPFIND /d/sub/": handler}
    if handler is invents_directories:
        answers["PROPFIND"] = handler
    with pytest.raises(error, match=message):
        await listed(answers)


async def test_a_directory_that_hangs_is_named(answering, impatient) -> None:
    endpoint = await answering(site({"PROPFIND /d/sub/": hangs}).handle)
    store = open_store(parse_uri(endpoint.replace("http", "webdav") + "/d"), limits=impatient)
    with pytest.raises(Unavailable, match="/d/sub"):
        [entry async for entry in store.entries()]
    await store.close()


async def test_a_listing_may_be_compressed(listed) -> None:
    async def handle(request: web.Request) -> web.Response:
        response = web.Response(status=207, text=multistatus(directory("/d/sub/"), file("/d/sub/z", 3)))
        response.enable_compression(web.ContentCoding.gzip)
        return response

    assert await listed({"PROPFIND /d/sub/": handle}) == {"a": 1, "sub/z": 3}

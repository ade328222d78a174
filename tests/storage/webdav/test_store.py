"""The contract on a scripted server, and what its answers may hide."""

from __future__ import annotations

import pytest
from aiohttp import web

from podferry.contract.errors import Changed, Corrupt, FerryError, InvalidSpec, NotFound
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.factory import open_store
from podferry.storage.request_builder import Origin
from podferry.storage.store import StoreConfig
from tests.support.dav_server import DavServer, file, multistatus


@pytest.fixture
async def served(answering):
    server = DavServer()
    server.files = {"/d/a": b"0123456789"}
    server.directories |= {"/d/", "/d/sub/"}
    server.store = open_store(parse_uri((await answering(server.handle)).replace("http", "webdav") + "/d"))
    yield server
    await server.store.close()


def sends(status: int, body: bytes, **headers: str):
    async def handle(request: web.Request) -> web.Response:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=body, headers=fields)

    return handle


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (sends(206, b"345", Content_Range="bytes 3-5/10"), Corrupt),
        (sends(206, b"2345", Content_Range="bytes 2-4/10"), Corrupt),
        (sends(206, b"23"), Corrupt),
        (sends(206, b"234", Content_Range="bytes 2-4/11", ETag='"t"'), Changed),
        (sends(206, b"234", Content_Range="bytes 2-4/10", ETag='"u"'), Changed),
        (sends(200, b"01234567"), Changed),
        (sends(200, b"01"), Corrupt),
        (sends(200, b"0123456789", Content_Encoding="br"), FerryError),
        (sends(204, b""), Corrupt),
        (sends(416, b""), Corrupt),
    ],
)
async def test_other_bytes_than_requested_are_an_error(served: DavServer, answer, error: type) -> None:
    served.answers["GET"] = answer
    with pytest.raises(error):
        await served.store.read("a", 2, 3, tag='"t"', size=10)


@pytest.mark.parametrize(
    "answer",
    [
        sends(206, b"234", Content_Range="bytes 2-4/10", ETag='"t"'),
        sends(206, b"234", Content_Range="bytes 2-4/*", ETag="t"),
        sends(206, b"234", Content_Range="bytes 2-4/10"),
        sends(200, b"0123456789"),
    ],
)
async def test_the_requested_bytes(served: DavServer, answer) -> None:
    served.answers["GET"] = answer
    assert bytes(await served.store.read("a", 2, 3, tag='"t"', size=10)) == b"234"


async def test_the_page_of_a_directory_is_no_file(served: DavServer) -> None:
    for answer in (sends(200, b"<html>", Content_Type="text/html"), sends(403, b""), sends(405, b"")):
        served.answers["GET"] = answer
        with pytest.raises(NotFound):
            await served.store.read("sub")


async def test_deleting_never_removes_a_directory(served: DavServer) -> None:
    await served.store.delete(["sub", "none", "a"])
    assert served.files == {}
    assert [each for each in served.requested if each.startswith("DELETE")] == ["DELETE /d/a"]


async def test_credentials_stay_at_the_server(served: DavServer, answering) -> None:
    fields: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        fields.extend(name for name in request.headers if name in {"Authorization", "X-Key"})
        return web.Response(body=b"0123456789")

    other = await answering(elsewhere)
    served.answers["GET"] = sends(302, b"", Location=f"{other}/a")
    keys = {"WEBDAV_USERNAME": "u", "WEBDAV_PASSWORD": "p", "WEBDAV_HEADERS": "X-Key: k"}
    store = open_store(served.store.uri, StoreConfig(credentials=keys))
    assert bytes(await store.read("a")) == b"0123456789"
    assert fields == []
    await store.close()


def test_addresses() -> None:
    for uri, origin in (
        (Uri("webdavs", "h"), Origin("h", 443, tls=True)),
        (Uri("webdav", "[::1]:8080"), Origin("::1", 8080, tls=False)),
    ):
        assert open_store(uri).request_builder.origin == origin
    with pytest.raises(InvalidSpec, match="must not name a user"):
        open_store(Uri("webdav", "user@host"))


@pytest.mark.parametrize(("tag", "size"), [('"t"', None), ('"t"', 10)])
async def test_a_file_that_is_overwritten_while_it_is_read_has_changed(
    served: DavServer, tag: str, size: int | None
) -> None:
    async def handle(request: web.Request) -> web.Response:
        """The head is of the old version, the bytes may be of both."""
        served.answers["PROPFIND"] = sends_version('"u"')
        return web.Response(status=206, body=b"2x4", headers={"ETag": '"t"', "Content-Range": "bytes 2-4/10"})

    served.answers["GET"] = handle
    with pytest.raises(Changed, match=r'tag "u", was "t"'):
        await served.store.read("a", 2, 3, tag=tag, size=size)


def sends_version(tag: str):
    async def handle(request: web.Request) -> web.Response:
        text = multistatus(file("/d/a", 10, tag))
        return web.Response(status=207, text=text, content_type="application/xml")

    return handle

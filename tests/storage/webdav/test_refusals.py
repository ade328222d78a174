"""What a server means with a status that has several meanings."""

from __future__ import annotations

import pytest
from aiohttp import web

from podferry.contract.errors import AccessDenied, InvalidSpec, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import WriteMode
from tests.support.dav_server import DavServer, Handler


@pytest.fixture
async def served(answering):
    server = DavServer()
    server.store = open_store(parse_uri((await answering(server.handle)).replace("http", "webdav") + "/x"))
    yield server
    await server.store.close()


def refusing(status: int) -> Handler:
    async def refuse(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=status)

    return refuse


def full(served: DavServer) -> Handler:
    """Stores empty files only."""

    async def put(request: web.Request) -> web.Response:
        return web.Response(status=405) if await request.read() else await DavServer.put(served, request)

    return put


@pytest.mark.parametrize("mode", WriteMode)
async def test_a_server_that_stores_empty_files_alone_is_full(served: DavServer, mode: WriteMode) -> None:
    served.answers["PUT"] = full(served)
    for body in (b"123", iter([b"12", b"3"])):
        with pytest.raises(
            Unavailable, match=r"failed to store a file in \S+/x/a \(HTTP 405 to PUT, \d bytes"
        ):
            await served.store.write("a/b", body, mode)
    assert served.files == {}
    del served.answers["PUT"]
    await served.store.write("a/b", b"123", mode)


@pytest.mark.parametrize("body", [b"", b"1"])
async def test_one_that_stores_none_is_read_only(served: DavServer, body: bytes) -> None:
    served.answers["PUT"] = refusing(405)
    with pytest.raises(AccessDenied, match=r"allow files to be created in \S+/x \(HTTP 405 to PUT"):
        await served.store.write("a", body)


@pytest.mark.parametrize("status", [404, 405])
async def test_it_may_recover_if_it_has_stored_files_before(served: DavServer, status: int) -> None:
    await served.store.write("a", b"1")
    served.answers["PUT"] = refusing(status)
    with pytest.raises(Unavailable, match=f"HTTP {status} to PUT, 1 bytes"):
        await served.store.write("b", b"1")


@pytest.mark.parametrize("status", [404, 409])
async def test_one_without_new_files_is_read_only(served: DavServer, status: int) -> None:
    served.answers["PUT"] = refusing(status)
    with pytest.raises(AccessDenied, match=rf"allow files to be created in \S+/x/d \(HTTP {status} to PUT"):
        await served.store.write("d/a", b"1")


@pytest.mark.parametrize("status", [404, 405, 409])
async def test_so_is_one_without_new_directories(served: DavServer, status: int) -> None:
    served.directories.add("/x/")
    served.answers.update({"MKCOL": refusing(status), "PUT": refusing(409)})
    match = rf"allow directories to be created in \S+/x \(HTTP {status} to MKCOL x/d/\)"
    with pytest.raises(AccessDenied, match=match):
        await served.store.write("d/e/a", b"1")


async def test_a_directory_that_another_upload_makes_again_was_removed(served: DavServer) -> None:
    async def is_there_by_now(request: web.Request) -> web.Response:
        if served.requested.count("PUT /x/d/a"):
            served.directories.add("/x/d/")
        return web.Response(status=405)

    async def conflict(request: web.Request) -> web.Response:
        served.requested.append("PUT /x/d/a")
        return web.Response(status=409)

    served.directories.add("/x/")
    served.answers.update({"MKCOL": is_there_by_now, "PUT": conflict})
    with pytest.raises(Unavailable, match=r"directory \S+/x/d was removed"):
        await served.store.write("d/a", b"1")


async def test_a_file_in_the_place_of_a_directory_is_named(served: DavServer) -> None:
    await served.store.write("d", b"1")
    served.answers.update({"MKCOL": refusing(405), "PUT": refusing(409)})
    with pytest.raises(InvalidSpec, match=r"/x/d is no directory"):
        await served.store.write("d/e/a", b"1")

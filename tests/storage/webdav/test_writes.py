"""Uploads, and servers that would lose or replace files."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from podferry.contract.errors import AccessDenied, AlreadyExists, InvalidSpec, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import WriteMode
from podferry.storage.timeouts_and_limits import Limits
from tests.support.dav_server import DavServer


@pytest.fixture
async def served(answering):
    server = DavServer()
    server.store = open_store(parse_uri((await answering(server.handle)).replace("http", "webdav") + "/x/y"))
    yield server
    await server.store.close()


async def test_directories_are_made_once_and_nothing_is_left(served: DavServer) -> None:
    await served.store.write("a/b/c", b"1")
    await served.store.write("a/b/d", iter((b"2", b"3")))
    await served.store.write("a/b/e", b"4", WriteMode.CREATE)
    assert served.files == {"/x/y/a/b/c": b"1", "/x/y/a/b/d": b"23", "/x/y/a/b/e": b"4"}
    assert served.requested.count("MKCOL /x/y/a/b/") == 2, "before and after those above it"
    assert served.locks == {}
    with pytest.raises(AlreadyExists):
        await served.store.write("a/b/c", b"5", WriteMode.CREATE)
    assert served.files["/x/y/a/b/c"] == b"1"


async def test_a_directory_that_somebody_else_makes_at_the_same_moment(served: DavServer) -> None:
    async def fails_once(request: web.Request) -> web.Response:
        del served.answers["MKCOL"]
        served.directories |= {"/x/", "/x/y/", "/x/y/a/"}
        return web.Response(status=500)

    served.answers["MKCOL"] = fails_once
    await served.store.write("a/b", b"1")
    assert served.files == {"/x/y/a/b": b"1"}


async def test_many_writes_make_a_directory_once(served: DavServer) -> None:
    await asyncio.gather(*(served.store.write(f"a/{number}", b"1") for number in range(24)))
    assert served.requested.count("MKCOL /x/y/a/") == 2, "before and after those above it"
    assert len(served.files) == 24


async def test_a_directory_that_was_removed_meanwhile_is_made_again(served: DavServer) -> None:
    await served.store.write("a/b", b"1")
    served.directories, served.files = {"/"}, {}

    async def conflict(request: web.Request) -> web.Response:
        if "/x/y/a/" in served.directories:
            return await served.put(request)
        return web.Response(status=409)

    served.answers["PUT"] = conflict
    with pytest.raises(Unavailable, match=r"directory \S+/x was removed .*HTTP 409 to PUT"):
        await served.store.write("a/b", b"2")
    await served.store.write("a/b", b"2")
    assert served.files == {"/x/y/a/b": b"2"}


async def test_an_upload_that_is_cut_leaves_no_trace(served: DavServer) -> None:
    async def cuts(request: web.Request) -> web.Response:
        served.files[request.path] = (await request.read())[:-1]
        return web.Response(status=201)

    served.answers["PUT"] = cuts
    with pytest.raises(Unavailable, match=r"not stored all of .*9 of 10 bytes"):
        await served.store.write("a", b"0123456789")
    assert served.files == {}


async def test_a_server_that_drops_bodies_in_chunks_is_named(served: DavServer) -> None:
    """Nextcloud's PHP behind FastCGI, where the web server does not collect them."""

    async def drop(request: web.Request) -> web.Response:
        await request.read()
        assert request.headers["Transfer-Encoding"] == "chunked"
        served.files[request.path] = b""
        return web.Response(status=201)

    served.answers["PUT"] = drop
    store = open_store(served.store.uri, limits=Limits(part_bytes=4))
    with pytest.raises(Unavailable, match=r"not stored all of .*\(0 of .*fastcgi_request_buffering on"):
        await store.write("a", iter([b"123"] * 3))
    await store.close()
    assert served.files == {}


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (507, Unavailable, "no space left"),
        (
            500,
            Unavailable,
            r"failed to store a file in \S+/x/y \(HTTP 500 to PUT, 1 bytes.*see the server's log",
        ),
        (400, InvalidSpec, "Check the address and the name"),
        (403, AccessDenied, "denies access"),
        (302, InvalidSpec, "not respond as a WebDAV server"),
    ],
)
async def test_a_refused_upload_is_named(served: DavServer, status: int, error: type, message: str) -> None:
    async def refuses(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "/login"} if status == 302 else {})

    served.answers["PUT"] = refuses
    with pytest.raises(error, match=message):
        await served.store.write("a", b"1")
    assert served.files == {}


async def test_a_server_that_replaces_files_takes_no_checkpoints(served: DavServer) -> None:
    async def moves(request: web.Request) -> web.Response:
        return await DavServer.move(served, request.clone(headers={**request.headers, "Overwrite": "T"}))

    served.answers["MOVE"] = moves
    for _ in range(2):
        with pytest.raises(InvalidSpec, match=r"checkpoints are not safe .*MOVE with Overwrite: F"):
            await served.store.write("a", b"1", WriteMode.CREATE)
    await served.store.write("a", b"1")
    assert served.files == {"/x/y/a": b"1"}


@pytest.mark.parametrize(
    ("method", "status", "error"),
    [
        ("PUT", 403, AccessDenied),
        ("PUT", 500, Unavailable),
        ("PUT", 507, Unavailable),
        ("LOCK", 503, Unavailable),
        ("MOVE", 503, Unavailable),
        ("MOVE", 507, Unavailable),
    ],
)
async def test_a_failure_is_no_server_that_replaces_files(
    served: DavServer, method: str, status: int, error: type
) -> None:
    async def fails(request: web.Request) -> web.Response:
        return web.Response(status=status)

    served.answers[method] = fails
    with pytest.raises(error):
        await served.store.write("a", b"1", WriteMode.CREATE)
    del served.answers[method]
    await served.store.write("a", b"1", WriteMode.CREATE)
    assert served.files == {"/x/y/a": b"1"}


@pytest.mark.parametrize("status", [405, 501])
async def test_nor_does_one_without_locks(served: DavServer, status: int) -> None:
    async def refuses(request: web.Request) -> web.Response:
        return web.Response(status=status)

    served.answers["LOCK"] = refuses
    with pytest.raises(InvalidSpec, match=rf"checkpoints are not safe .*HTTP {status} to LOCK"):
        await served.store.write("a", b"1", WriteMode.CREATE)
    assert served.files == {}


async def test_nor_one_whose_locks_have_two_holders(served: DavServer) -> None:
    async def locks(request: web.Request) -> web.Response:
        served.locks.clear()
        return await served.lock(request)

    served.answers["LOCK"] = locks
    with pytest.raises(InvalidSpec, match="a second LOCK succeeds"):
        await served.store.write("a", b"1", WriteMode.CREATE)


async def test_a_server_that_cuts_names_stores_none_of_them(served: DavServer) -> None:
    """`a?b` would replace `a`."""

    async def cuts(request: web.Request) -> web.Response:
        target = request.headers["Destination"].partition("%3F")[0]
        return await DavServer.move(served, request.clone(headers={**request.headers, "Destination": target}))

    await served.store.write("a", b"1")
    served.answers["MOVE"] = cuts
    with pytest.raises(InvalidSpec, match="cannot store the name"):
        await served.store.write("a?b", b"2")
    assert served.files == {"/x/y/a": b"1"}


async def test_a_server_that_distinguishes_case_is_asked_once(served: DavServer) -> None:
    for name in ("Model.pt", "model.pt", "other", "Model.pt"):
        await served.store.write(name, name.encode())
    assert len(served.files) == 3
    assert [each for each in served.requested if each.startswith("PROPFIND") and ".podferry" not in each] == [
        "PROPFIND /x/y/Model.pt",
        "PROPFIND /x/y/mODEL.PT",
    ]


@pytest.mark.parametrize("mode", WriteMode)
async def test_of_names_that_are_one_file_at_the_server_the_second_is_refused(
    served: DavServer, mode: WriteMode
) -> None:
    async def without_case(request: web.Request) -> web.StreamResponse:
        name = next((name for name in served.files if name.lower() == request.path.lower()), request.path)
        return await served.propfind(request.clone(rel_url=name))

    await served.store.write("Model.pt", b"1")
    served.answers["PROPFIND"] = without_case
    store = open_store(served.store.uri)
    with pytest.raises(InvalidSpec, match=r"/x/y/model.pt differs only in case from .* \(Model.pt\)"):
        await store.write("model.pt", b"2", mode)
    await store.write("Model.pt", b"3")
    await store.close()
    assert served.files == {"/x/y/Model.pt": b"3"}


async def test_a_server_that_hides_what_is_missing_takes_files(served: DavServer) -> None:
    async def denies(request: web.Request) -> web.Response:
        found = await served.propfind(request)
        return found if found.status != 404 else web.Response(status=403)

    served.answers["PROPFIND"] = denies
    await served.store.write("a/b", b"1")
    assert served.files == {"/x/y/a/b": b"1"}

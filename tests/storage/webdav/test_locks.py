"""One writer at a time."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.object_names import is_temporary
from podferry.storage.store import StoreConfig
from podferry.storage.webdav.locks import DavLocks, lock_name
from podferry.storage.webdav.store import WebDavStore
from tests.support.dav_server import DavServer
from tests.support.patience import PATIENCE


@pytest.fixture
async def served(answering):
    server = DavServer()
    endpoint = await answering(server.handle)
    store = WebDavStore(Uri("webdav", endpoint.removeprefix("http://")), StoreConfig())
    server.locking = DavLocks(store._client)
    yield server
    await store.close()


def test_each_name_has_a_lock_that_no_listing_shows() -> None:
    assert lock_name("a/b") != lock_name("a/c")
    assert lock_name("a/b").startswith("a/")
    assert is_temporary(lock_name("a/b"))


async def test_a_server_that_fails_while_a_lock_is_removed_is_asked_once_more(served: DavServer) -> None:
    statuses = [500]

    async def locks(request: web.Request) -> web.Response:
        return web.Response(status=statuses.pop()) if statuses else await served.lock(request)

    served.answers["LOCK"] = locks
    async with served.locking.holding("a"):
        assert len(served.locks) == 1
    statuses += [500, 500]
    with pytest.raises(aiohttp.ClientResponseError, match="500"):
        async with served.locking.holding("a"):
            pass


async def test_the_second_waits_for_the_first(served: DavServer) -> None:
    order: list[str] = []
    taken = asyncio.Event()

    async def locks(request: web.Request) -> web.Response:
        response = await served.lock(request)
        if response.status == 423:
            taken.set()
        return response

    served.answers["LOCK"] = locks

    async def second() -> None:
        async with served.locking.holding("a"):
            order.append("second")

    async with served.locking.holding("a"):
        waiting = asyncio.create_task(second())
        await asyncio.wait_for(taken.wait(), PATIENCE)
        order.append("first")
    await asyncio.wait_for(waiting, PATIENCE)
    assert order == ["first", "second"]
    assert served.files == {}
    assert served.locks == {}


async def test_a_lock_without_a_token_is_none(served: DavServer) -> None:
    async def tokenless(request: web.Request) -> web.Response:
        return web.Response(status=200)

    served.answers["LOCK"] = tokenless
    with pytest.raises(InvalidSpec, match="no Lock-Token"):
        await served.locking.take("a")

"""Sessions: over TLS with a private CA, through a proxy, and closed. What they read: tests/storage/webdav."""

from __future__ import annotations

import pytest
from aiohttp import web

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.network.settings import read_network
from podferry.storage.store import StoreConfig
from tests.support.client_connections import client_connections
from tests.support.dav_server import DavServer


@pytest.fixture
def server():
    server = DavServer()
    server.files = {"/a": b"0123"}
    return server


async def test_over_tls_with_a_private_authority(server, answering, private_ca) -> None:
    endpoint = await answering(server.handle, private_ca.server_context("127.0.0.1"))
    uri = Uri("webdavs", endpoint.removeprefix("https://"))
    trusting = open_store(uri, StoreConfig(network=read_network({}, {"ca": private_ca.pem})))
    assert bytes(await trusting.read("a", 1, 2)) == b"12"
    await trusting.close()
    store = open_store(uri)
    with pytest.raises(InvalidSpec, match=r"certificate of the server .* is not trusted"):
        await store.stat("a")
    await store.close()


async def test_through_a_proxy(server, answering) -> None:
    seen: list[str] = []

    async def proxy(request: web.Request) -> web.StreamResponse:
        seen.append(request.raw_path)
        return await server.handle(request)

    address = await answering(proxy)
    store = open_store(
        Uri("webdav", "dav.example.com"), StoreConfig(network=read_network({"HTTP_PROXY": address}))
    )
    assert bytes(await store.read("a")) == b"0123"
    assert seen == ["http://dav.example.com/a"]
    await store.close()


async def test_a_closed_store_leaves_no_connection(server, answering) -> None:
    endpoint = await answering(server.handle)
    store = open_store(Uri("webdav", endpoint.removeprefix("http://")))
    await store.stat("a")
    port = int(endpoint.rpartition(":")[2])
    assert client_connections(port) == 1
    await store.close()
    assert client_connections(port) == 0

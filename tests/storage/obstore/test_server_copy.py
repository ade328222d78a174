import hashlib

import msgspec
import pytest
from aiohttp import web

from podferry.contract.errors import Corrupt, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.store_calls import KEYS

DATA = b"0123456789"
COPIED = "<CopyObjectResult><ETag>&quot;x&quot;</ETag></CopyObjectResult>"


class Server:
    """An S3 server that says of copies what the test wants."""

    def __init__(self):
        self.sizes = {"a": len(DATA)}
        self.copied = len(DATA)
        self.digest = hashlib.md5(DATA, usedforsecurity=False).hexdigest()
        self.status = 200
        self.requests = []

    async def answer(self, request):
        name = request.path.rpartition("/")[2]
        self.requests.append((request.method, name))
        if request.method == "PUT":
            self.sizes[name] = self.copied
            return web.Response(status=self.status, text=COPIED)
        if name not in self.sizes:
            return web.Response(status=404)
        digest = hashlib.md5(DATA, usedforsecurity=False).hexdigest() if name == "a" else self.digest
        headers = {
            "ETag": f'"{digest}"',
            "x-amz-request-id": "1",
            "Last-Modified": "Sun, 22 Nov 2026 16:43:20 GMT",
        }
        return web.Response(headers={**headers, "Content-Length": str(self.sizes[name])})


@pytest.fixture
def server():
    return Server()


@pytest.fixture(params=["own requests", "obstore alone"])
async def store(request, server, answering, quick):
    config = StoreConfig(endpoint=await answering(server.answer), credentials=KEYS)
    store = open_store(parse_uri("s3://bucket/run"), config, msgspec.structs.replace(quick, retries=0))
    if request.param == "obstore alone":
        store.__dict__["multipart"] = None
    yield store
    await store.close()


async def test_a_copy_costs_three_requests(store, server):
    await store.server_copy.copy("a", "b")
    assert server.requests == [("HEAD", "a"), ("PUT", "b"), ("HEAD", "b")]


async def test_a_copy_of_another_size_is_noticed(store, server):
    server.copied = 9
    with pytest.raises(Corrupt, match="9 bytes, the source has 10"):
        await store.server_copy.copy("a", "b")


async def test_a_copy_with_another_checksum_is_noticed(store, server):
    server.digest = "0" * 32
    if store.multipart is None:
        await store.server_copy.copy("a", "b")
        return
    with pytest.raises(Corrupt, match="md5 0000"):
        await store.server_copy.copy("a", "b")


async def test_nothing_is_copied_from_a_missing_source(store, server):
    with pytest.raises(NotFound):
        await store.server_copy.copy("none", "b")
    assert ("PUT", "b") not in server.requests


async def test_an_error_of_the_server_is_temporary(store, server):
    server.status = 503
    with pytest.raises(Unavailable):
        await store.server_copy.copy("a", "b")

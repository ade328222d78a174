import asyncio
import time

import pytest
from aiohttp import web

from podferry.contract.errors import AlreadyExists, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig, WriteMode
from tests.support.store_calls import KEYS, listed


@pytest.mark.parametrize("ending", ["raises", "cancelled"])
async def test_an_abandoned_upload_leaves_no_parts(store, s3, ending):
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def body():
        for i in range(24):
            if i == 20:
                loop.call_soon_threadsafe(started.set)
                if ending == "raises":
                    raise KeyError("mine")
                time.sleep(0.2)
            yield b"x" * (1 << 20)

    task = asyncio.create_task(store.write("big", body()))
    await started.wait()
    if ending == "cancelled":
        task.cancel()
    with pytest.raises((KeyError, asyncio.CancelledError)):
        await task
    uploads = s3.list_multipart_uploads(Bucket="bucket").get("Uploads", [])
    assert [item for item in uploads if item["Key"].startswith(store.uri.key)] == []
    assert await listed(store) == []


async def test_a_body_that_fails_sends_no_request_about_the_bucket(answering, quick):
    methods = []

    async def accept(request):
        methods.append(request.method)
        return web.Response(status=201)

    def body():
        yield b"x" * quick.part_bytes
        raise FileNotFoundError("the file to upload")

    credentials = {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0"}
    config = StoreConfig(endpoint=await answering(accept), credentials=credentials)
    with pytest.raises(FileNotFoundError, match="the file to upload"):
        await open_store(parse_uri("az://container/x"), config, quick).write("a", body())
    assert "GET" not in methods


@pytest.mark.parametrize(("size", "expected"), [(None, Unavailable), (5, Unavailable), (6, AlreadyExists)])
async def test_a_create_whose_connection_breaks_exists_only_if_certain(answering, quick, size, expected):
    async def breaking(request):
        if request.method == "PUT":
            request.transport.abort()
            return web.Response()
        if size is None:
            return web.Response(status=404)
        headers = {
            "ETag": '"t"',
            "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT",
            "Content-Length": str(size),
        }
        return web.Response(headers=headers)

    endpoint = await answering(breaking)
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), quick)
    with pytest.raises(expected):
        await store.write("a", b"12345", WriteMode.CREATE)


async def test_a_conflict_between_creates_is_not_an_existing_object(answering, quick):
    async def conflict(request):
        await request.read()
        return web.Response(status=409, text="<Error><Code>ConditionalRequestConflict</Code></Error>")

    endpoint = await answering(conflict)
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), quick)
    with pytest.raises(Unavailable):
        await store.write("a", b"x", WriteMode.CREATE)

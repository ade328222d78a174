"""What a lean client sends, to real servers, which check signatures."""

import asyncio
from datetime import timedelta

import obstore
import pytest

from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.real_servers import AZURITE_ACCOUNT, AZURITE_KEY
from tests.support.request_builder_contract import *  # noqa: F403
from tests.support.request_builder_contract import Client

S3 = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
BOS = {
    "BOS_ACCESS_KEY_ID": "key-of-tests",
    "BOS_SECRET_ACCESS_KEY": "secret-of-tests",
    "BOS_REGION": "gz",
}
AZURE = {"AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY}
SERVERS = {
    "versitygw": (Uri("s3", "bucket"), S3),
    "minio": (Uri("s3", "bucket"), S3),
    "bos": (Uri("bos", "bucket"), BOS),
    "azurite": (Uri("az", "bucket"), AZURE),
    "fake_gcs": (Uri("gs", "bucket"), {"GOOGLE_SKIP_SIGNATURE": "true"}),
}


def opened(request, server, key, **held):
    uri, keys = SERVERS[server]
    config = StoreConfig(endpoint=request.getfixturevalue(server), credentials={**keys, **held})
    return open_store(uri / key, config)


@pytest.fixture(params=SERVERS)
async def store(request, fresh):
    store = opened(request, request.param, fresh)
    yield store
    await store.close()


async def test_many_requests_in_parallel(store):
    await asyncio.gather(*(store.write(f"m/{i}", bytes([i]) * i) for i in range(40)))
    clients = {entry: Client(store.request_builder) async for entry in store.entries()}
    answers = await asyncio.gather(*(client.get(entry) for entry, client in clients.items()))
    for entry, (status, plain, _, body) in zip(clients, answers, strict=True):
        number = int(entry.name.rpartition("/")[2])
        assert (status, plain, body) == (200, True, bytes([number]) * number)
    for client in clients.values():
        await client.close()


@pytest.mark.parametrize(
    ("server", "wrong"),
    [
        ("versitygw", {"AWS_SECRET_ACCESS_KEY": "other"}),
        ("azurite", {"AZURE_STORAGE_ACCOUNT_KEY": "b3RoZXI="}),
    ],
)
async def test_a_wrong_key_is_refused(request, server, wrong, fresh):
    store = opened(request, server, fresh)
    await store.write("a", b"x")
    client = Client(opened(request, server, fresh, **wrong).request_builder)
    status, plain, _, _ = await client.get(await store.stat("a"))
    assert (status, plain) == (403, False)
    await store.close()


async def test_a_shared_access_signature_is_taken(request):
    store = opened(request, "azurite", "plain")  # obstore's signature of an odd name is refused
    await store.write("a", b"0123")
    signed = obstore.sign(store._bucket.store, "GET", "plain/a", timedelta(minutes=5))
    key = {"AZURE_STORAGE_ACCOUNT_KEY": "", "AZURE_STORAGE_SAS_TOKEN": signed.partition("?")[2]}
    client = Client(opened(request, "azurite", "plain", **key).request_builder)
    status, plain, _, body = await client.get(await store.stat("a"), 1, 2)
    assert (status, plain, body) == (206, True, b"12")
    await client.close()
    await store.close()

"""Uploads in parts to fake-gcs-server."""

import os

import pytest

from podferry.contract.errors import BucketNotFound, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.contract_suite.multipart import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

KEYS = {"GOOGLE_SKIP_SIGNATURE": "true"}
LIMITS = Limits(retries=1, retry_seconds=5, part_bytes=5 << 20)
PART = 1 << 20


@pytest.fixture
def part():
    return PART


@pytest.fixture
async def reopen(fake_gcs, fresh):
    stores = []

    def reopen(bucket="bucket"):
        config = StoreConfig(endpoint=fake_gcs, credentials=KEYS)
        stores.append(open_store(Uri("gs", bucket, fresh), config, LIMITS))
        return stores[-1]

    yield reopen
    for store in stores:
        await store.close()


async def test_more_parts_than_one_request_composes(store):
    upload = await store.multipart.begin("d/big", PART)
    data = [os.urandom(1000 + number) for number in range(70)]
    parts = await send_all(store, "d/big", upload, data)  # noqa: F405
    await store.multipart.complete("d/big", upload, parts)
    assert bytes(await store.read("d/big")) == b"".join(data)
    assert await names(store) == ["d/big"]  # noqa: F405


async def test_nothing_is_left_of_an_upload(store, part, data):
    for end in ("complete", "abort"):
        upload = await store.multipart.begin("big", PART)
        parts = await send_all(store, "big", upload, data)  # noqa: F405
        await getattr(store.multipart, end)("big", upload, *([parts] if end == "complete" else []))
        assert await store.multipart.client.listed("") == await store.multipart.client.listed("big")


async def test_a_damaged_part_is_sent_again(store, data, monkeypatch):
    upload = await store.multipart.begin("big", PART)
    monkeypatch.setattr("podferry.storage.gcs.parts.crc", lambda *_: 1)
    with pytest.raises(Unavailable, match="was damaged in transit"):
        await store.multipart.send("big", upload, 1, data[0])


async def test_a_missing_bucket_is_named(reopen):
    with pytest.raises(BucketNotFound):
        await reopen("no-such-bucket").multipart.begin("big", PART)

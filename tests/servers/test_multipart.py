"""Uploads in parts to a real server: versitygw, which checks signatures and checksums; also to MinIO."""

import msgspec
import pytest

from podferry.contract.errors import AccessDenied, BucketNotFound, FerryError, NotFound, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import object_checksum
from podferry.storage.contract_suite.multipart import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

KEYS = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
LIMITS = Limits(retries=1, retry_seconds=5)
PART = 5 << 20


@pytest.fixture
def part():
    return PART


@pytest.fixture(params=["versitygw", "minio"])
async def reopen(request, fresh):
    stores, endpoint = [], request.getfixturevalue(request.param)

    def reopen(bucket="bucket", keys=KEYS):
        config = StoreConfig(endpoint=endpoint, credentials=keys)
        stores.append(open_store(Uri("s3", bucket, fresh), config, LIMITS))
        return stores[-1]

    yield reopen
    for store in stores:
        await store.close()


async def test_the_server_stores_the_objects_checksum(store, data):
    upload = await store.multipart.begin("big", PART)
    assert upload.startswith("crc64nvme:")
    receipts = await send_all(store, "big", upload, data)  # noqa: F405
    await store.multipart.complete("big", upload, receipts)
    assert await store.multipart._is_stored("big", object_checksum(receipts), []) is True
    wrong = [*receipts[:2], msgspec.structs.replace(receipts[2], crc64=1)]
    assert await store.multipart._is_stored("big", object_checksum(wrong), []) is False


async def test_a_part_with_another_checksum_is_refused(store, data, monkeypatch):
    upload = await store.multipart.begin("big", PART)
    monkeypatch.setattr("podferry.storage.s3.multipart.crc64", lambda _: 1)
    with pytest.raises(Unavailable, match="was damaged in transit"):
        await store.multipart.send("big", upload, 1, data[0])


async def test_an_object_with_another_checksum_is_refused(store, data):
    upload = await store.multipart.begin("big", PART)
    receipts = await send_all(store, "big", upload, data)  # noqa: F405
    with pytest.raises(FerryError):
        await store.multipart.complete(
            "big", upload, [msgspec.structs.replace(receipts[0], crc64=1), *receipts[1:]]
        )
    with pytest.raises(NotFound):
        await store.stat("big")


async def test_parts_that_the_server_does_not_have_are_reported(store, data):
    upload = await store.multipart.begin("big", PART)
    receipts = await send_all(store, "big", upload, data)  # noqa: F405
    other = msgspec.structs.replace(receipts[0], tag='"0123456789abcdef0123456789abcdef"')
    with pytest.raises(NotFound, match="Start it again"):
        await store.multipart.complete("big", upload, [other, *receipts[1:]])


async def test_signed_parts_are_verified_too(store, data):
    store.multipart._stores_checksum = False
    upload = await store.multipart.begin("big", PART)
    assert upload.startswith("sha256:")
    receipts = await send_all(store, "big", upload, data)  # noqa: F405
    await store.multipart.complete("big", upload, receipts)
    await store.multipart.complete("big", upload, receipts)
    assert bytes(await store.read("big")) == b"".join(data)


async def test_wrong_credentials_and_buckets_are_reported_by_multipart_uploads(reopen, data):
    wrong = [{**KEYS, "AWS_ACCESS_KEY_ID": "other"}, {**KEYS, "AWS_SECRET_ACCESS_KEY": "other"}]
    known = await reopen().multipart.begin("big", PART)
    for keys in wrong:
        parts = reopen(keys=keys).multipart
        with pytest.raises(AccessDenied):
            await parts.begin("big", PART)
        with pytest.raises(AccessDenied):
            await parts.send("big", known, 1, data[0])
    with pytest.raises(BucketNotFound):
        await reopen("no-such-bucket").multipart.begin("big", PART)

"""Copies at real servers."""

import pytest

from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import ChecksumKind
from podferry.storage.contract_suite.server_copy import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.s3.stored_object import describe
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

KEYS = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
SERVERS = {
    "versitygw": (Uri("s3", "bucket"), KEYS),
    "minio": (Uri("s3", "bucket"), KEYS),
    "fake_gcs": (Uri("gs", "bucket"), {"GOOGLE_SKIP_SIGNATURE": "true"}),
}
LIMITS = Limits(retries=1, retry_seconds=5, part_bytes=5 << 20)


@pytest.fixture(params=SERVERS)
async def store(request, fresh):
    uri, keys = SERVERS[request.param]
    endpoint = request.getfixturevalue(request.param)
    store = open_store(uri / fresh, StoreConfig(endpoint=endpoint, credentials=keys), LIMITS)
    yield store
    await store.close()


async def test_the_checksum_of_an_object_in_parts_is_compared(store):
    if store.uri.scheme != "s3":
        return
    upload = await store.multipart.begin("a", 5 << 20)
    part = await store.multipart.send("a", upload, 1, b"1" * 1000)
    await store.multipart.complete("a", upload, [part])
    await store.server_copy.copy("a", "b")
    found = [await describe(store.multipart.client, name) for name in ("a", "b")]
    assert [one.checksum and one.checksum.kind for one in found] == [ChecksumKind.CRC64NVME] * 2
    assert found[0] == found[1]

"""Multipart uploads to an imitation of OSS."""

import pytest

from podferry.contract.errors import AccessDenied, BucketNotFound, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import ChecksumKind, crc, crc64
from podferry.storage.contract_suite.multipart import *  # noqa: F403
from podferry.storage.contract_suite.multipart import send_all
from podferry.storage.factory import open_store
from podferry.storage.multipart import UploadedPart
from podferry.storage.oss.multipart import combined_crc, completion_xml
from podferry.storage.store import StoreConfig
from tests.storage.oss.conftest import KEYS

XZ = ChecksumKind.CRC64XZ


@pytest.fixture
def part():
    return 100 * 1024


@pytest.fixture
async def reopen(shared_oss, fresh, quick):
    stores = []

    def reopen(bucket="bucket", keys=KEYS):
        config = StoreConfig(shared_oss.endpoint, credentials=keys)
        stores.append(open_store(Uri("oss", bucket, fresh), config, quick))
        return stores[-1]

    yield reopen
    for store in stores:
        await store.close()


async def test_damaged_parts_are_sent_again(oss, opened, part, data):
    store = opened()
    upload = await store.multipart.begin("big", part)
    oss.damages = 1
    with pytest.raises(Unavailable, match="arrived damaged"):
        await store.multipart.send("big", upload, 1, data[0])
    parts = await send_all(store, "big", upload, data)
    await store.multipart.complete("big", upload, parts)
    assert bytes(await store.read("big")) == b"".join(data)


async def test_without_a_checksum_the_server_compares_a_digest(oss, opened, part, data, monkeypatch):
    monkeypatch.setattr("podferry.storage.oss.multipart.is_computable", lambda kind: False)
    store = opened()
    upload = await store.multipart.begin("big", part)
    parts = [await store.multipart.send("big", upload, 1, data[0])]
    assert parts[0].tag.endswith('";')
    oss.damages = 1
    parts.append(await store.multipart.send("big", upload, 2, data[1]))  # refused once, and sent again
    assert not oss.damages
    await store.multipart.complete("big", upload, parts)
    assert bytes(await store.read("big")) == data[0] + data[1]


async def test_wrong_credentials_and_buckets_are_reported(reopen, part, data):
    known = await reopen().multipart.begin("big", part)
    for name in ("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET"):
        parts = reopen(keys={**KEYS, name: "other"}).multipart
        with pytest.raises(AccessDenied):
            await parts.begin("big", part)
        with pytest.raises(AccessDenied):
            await parts.send("big", known, 1, data[0])
    with pytest.raises(BucketNotFound):
        await reopen("no-such-bucket").multipart.begin("big", part)


def uploaded(number, data, tag='"A"'):
    return UploadedPart(number, f"{tag};{crc(XZ, data)}", crc64(data), len(data))


def test_the_checksums_of_parts_combine():
    parts = [uploaded(1, b"one"), uploaded(2, b"two, longer"), uploaded(3, b"3")]
    assert combined_crc(parts) == str(crc(XZ, b"onetwo, longer3"))
    assert combined_crc([*parts, UploadedPart(4, '"A";', 0, 1)]) == ""


def test_a_completion_names_the_parts():
    assert completion_xml([uploaded(1, b"1", '"A<"')]) == (
        b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>&quot;A&lt;&quot;</ETag></Part>"
        b"</CompleteMultipartUpload>"
    )

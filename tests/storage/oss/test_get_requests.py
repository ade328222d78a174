"""Requests of the connection pool, to an imitation of OSS, which verifies their signatures."""

import msgspec
import pytest

from podferry.contract.errors import CredentialsMissing
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import ChecksumKind, matches
from podferry.storage.checksum.response_header import response_checksum
from podferry.storage.factory import open_store
from podferry.storage.network.settings import read_network
from podferry.storage.store import StoreConfig
from tests.storage.oss.conftest import KEYS
from tests.support.oss.signatures import Account
from tests.support.request_builder_contract import *  # noqa: F403
from tests.support.request_builder_contract import Client

TOKEN = "token+of/tests="


@pytest.fixture
async def store(shared_oss, fresh, quick):
    store = open_store(Uri("oss", "bucket", fresh), StoreConfig(shared_oss.endpoint, credentials=KEYS), quick)
    yield store
    await store.close()


async def test_complete_responses_and_ranges_have_the_checksum(opened):
    store, data = opened("run/1"), bytes(range(250)) * 40
    await store.write("d/a b+c%d", data)
    entry = await store.stat("d/a b+c%d")
    client = Client(store.request_builder)
    for start, length in ((0, len(data)), (1000, 500)):
        status, plain, head, body = await client.get(entry, start, length)
        assert (status, plain, body) == (206 if start else 200, True, data[start : start + length])
        found = response_checksum(head.removesuffix(b"\r\n\r\n"), entry)
        assert found is not None
        assert found.kind is ChecksumKind.CRC64XZ
        assert matches(found, memoryview(data))
    assert not store.request_builder.checksum_needs_head
    await client.close()


async def test_temporary_keys_send_their_token(oss, opened):
    oss.accounts["STS.k"] = Account("s", TOKEN)
    held = {"OSS_ACCESS_KEY_ID": "STS.k", "OSS_ACCESS_KEY_SECRET": "s", "OSS_REGION": "cn-hangzhou"}
    store = opened(**held, OSS_SESSION_TOKEN=TOKEN)
    await store.write("a", b"1")
    client = Client(store.request_builder)
    assert (await client.get(await store.stat("a")))[0] == 200
    refused = Client(opened(**held, OSS_SESSION_TOKEN="other").request_builder)
    assert (await refused.get(await store.stat("a")))[:2] == (403, False)
    await client.close()


async def test_public_objects_need_no_signature(oss, opened):
    await opened().write("a", b"1")
    store = opened(OSS_SKIP_SIGNATURE="true", OSS_REGION="cn-hangzhou")
    client = Client(store.request_builder)
    assert (await client.get(Entry("a", 1)))[:2] == (403, False)
    oss.anonymous.add("bucket")
    assert (await client.get(Entry("a", 1)))[0] == 200
    await client.close()


async def test_a_wrong_key_is_refused(opened):
    await opened().write("a", b"1")
    client = Client(opened(**KEYS | {"OSS_ACCESS_KEY_SECRET": "other"}).request_builder)
    assert (await client.get(Entry("a", 1)))[:2] == (403, False)


def test_keys_are_loaded_before_requests_are_built(opened):
    with pytest.raises(CredentialsMissing, match="not signed yet"):
        opened().request_builder.build(Entry("a", 1), 0, 1)


def test_a_bucket_is_a_host_of_its_own():
    held = {name: value for name, value in KEYS.items() if name != "OSS_REGION"}
    config = StoreConfig(endpoint="https://oss-cn-hangzhou-internal.aliyuncs.com", credentials=held)
    origin = open_store(Uri("oss", "my-bucket"), config).request_builder.origin
    assert (origin.host, origin.port, origin.tls) == (
        "my-bucket.oss-cn-hangzhou-internal.aliyuncs.com",
        443,
        True,
    )


def test_behind_some_proxies_only_the_engine_sends_requests():
    config = StoreConfig(endpoint="http://oss.internal", credentials=KEYS)
    proxied = msgspec.structs.replace(config, network=read_network({"HTTP_PROXY": "http://proxy:3128"}))
    assert open_store(Uri("oss", "bucket"), config).request_builder is not None
    assert open_store(Uri("oss", "bucket"), proxied).request_builder is None

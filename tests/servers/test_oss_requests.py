"""OSS by the connection pool. The server is imitated: there is no usable one that could be started here.

It checks signatures as Alibaba documents them (signature version 1 in a URL), by code of its own.
"""

import base64
import hashlib
import hmac
import time

import pytest
from aiohttp import web

from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import ChecksumKind, matches, running_checksum
from podferry.storage.checksum.response_header import response_checksum
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.request_builder_contract import Client

SECRET = "secret-of-tests"
KEYS = {"OSS_ACCESS_KEY_ID": "key-of-tests", "OSS_ACCESS_KEY_SECRET": SECRET}
TOKEN = {"OSS_SESSION_TOKEN": "token+of/tests="}
NAMES = ["plain", "d/e/f.bin", "a b+c%d&e=f", "ü/漢字", "q?x#y"]
DATA = bytes(range(250)) * 40


class ImitatedOss:
    """Serves one object under every name of the bucket to signed requests."""

    def __init__(self):
        self.refused = []

    async def answer(self, request):
        name, query = request.path, dict(request.query)
        signature = query.pop("Signature", "")
        if signature != self.signed(name, query) or int(query["Expires"]) < time.time():
            self.refused.append(request.raw_path)
            return web.Response(status=403, text="SignatureDoesNotMatch")
        crc = running_checksum(ChecksumKind.CRC64XZ)
        crc.update(memoryview(DATA))
        headers = {
            "ETag": '"0123456789ABCDEF0123456789ABCDEF-2"',
            "x-oss-object-type": "Multipart",
            "x-oss-hash-crc64ecma": str(int.from_bytes(crc.digest(), "big")),
        }
        ranged = request.http_range
        if ranged.start is None:
            return web.Response(body=DATA, headers=headers)
        body = DATA[ranged]
        headers["Content-Range"] = f"bytes {ranged.start}-{ranged.start + len(body) - 1}/{len(DATA)}"
        return web.Response(status=206, body=body, headers=headers)

    @staticmethod
    def signed(path, query):
        token = query.get("security-token")
        resource = path + (f"?security-token={token}" if token else "")
        text = f"GET\n\n\n{query.get('Expires')}\n{resource}"
        return base64.b64encode(hmac.digest(SECRET.encode(), text.encode(), hashlib.sha1)).decode()


@pytest.fixture
async def served():
    oss, app = ImitatedOss(), web.Application()
    app.router.add_get("/{name:.*}", oss.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield oss, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize("held", [KEYS, KEYS | TOKEN])
async def test_the_pool_accepts_what_oss_sends(served, held):
    oss, endpoint = served
    store = open_store(Uri("oss", "bucket", "run/1"), StoreConfig(endpoint=endpoint, credentials=held))
    client = Client(store.request_builder)
    for name in NAMES:
        entry = Entry(name, len(DATA), "0123456789ABCDEF0123456789ABCDEF-2")
        for start, length in ((0, len(DATA)), (1000, 500)):
            status, plain, head, body = await client.get(entry, start, length)
            assert (status, plain, body) == (206 if start else 200, True, DATA[start : start + length])
            found = response_checksum(head.removesuffix(b"\r\n\r\n"), entry)
            assert found is not None
            assert found.kind is ChecksumKind.CRC64XZ
            assert matches(found, memoryview(DATA))
    assert not store.request_builder.checksum_needs_head
    assert not oss.refused
    await client.close()
    await store.close()


async def test_a_wrong_key_is_refused_by_oss(served):
    oss, endpoint = served
    wrong = KEYS | {"OSS_ACCESS_KEY_SECRET": "other"}
    store = open_store(Uri("oss", "bucket"), StoreConfig(endpoint=endpoint, credentials=wrong))
    client = Client(store.request_builder)
    status, plain, _, _ = await client.get(Entry("a", len(DATA)), 0, len(DATA))
    assert (status, plain) == (403, False)
    assert oss.refused
    await client.close()
    await store.close()


def test_a_bucket_is_a_host_of_its_own():
    config = StoreConfig(endpoint="https://oss-cn-hangzhou.aliyuncs.com", credentials=KEYS)
    requests = open_store(Uri("oss", "my-bucket"), config).request_builder
    assert (requests.origin.host, requests.origin.port, requests.origin.tls) == (
        "my-bucket.oss-cn-hangzhou.aliyuncs.com",
        443,
        True,
    )


def test_the_file_system_handles_what_oss2_rejects():
    for uri, endpoint in ((Uri("oss", "b"), None), (Uri("oss", "Not A Bucket"), "https://x.aliyuncs.com")):
        assert open_store(uri, StoreConfig(endpoint=endpoint, credentials=KEYS)).request_builder is None

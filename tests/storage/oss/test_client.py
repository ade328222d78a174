"""What an imitation of OSS refuses, and what users are told; the network between."""

import io
from contextlib import suppress

import alibabacloud_oss_v2 as sdk
import msgspec
import pytest
from aiohttp import web

from podferry.contract.errors import (
    AccessDenied,
    BucketNotFound,
    CredentialsMissing,
    InvalidSpec,
    NotFound,
    Throttled,
    Unavailable,
)
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.network.ca_bundle import CaBundle
from podferry.storage.network.proxies import read_proxies
from podferry.storage.network.settings import Network
from podferry.storage.store import StoreConfig
from tests.storage.oss.conftest import KEYS
from tests.support.connect_proxy import tls_relay
from tests.support.oss.bucket import StoredObject
from tests.support.oss.errors import FORBIDDEN_BY_KMS, OssError
from tests.support.oss.sdk_client import client_of
from tests.support.oss.server import serving
from tests.support.oss.signatures import Account, raw_query
from tests.support.request_builder_contract import Client


async def refusal(store, name="a"):
    """What a read is answered with; the problem, measured and remedied."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the callers look at its type
        await store.read(name)
    return caught.value, caught.value.problems[0]


@pytest.mark.parametrize("name", ["OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET"])
async def test_wrong_keys_are_denied_and_not_printed(opened, name):
    store = opened(**KEYS | {name: "other-secret"})
    for call in (
        store.stat("a"),
        store.read("a"),
        store.write("a", b"x"),
        store.children(),
        store.delete(["a"]),
    ):
        with pytest.raises(AccessDenied, match="rejects the credentials") as caught:
            await call
        assert "OSS_ACCESS_KEY_ID, OSS_ACCESS_KEY_SECRET" in str(caught.value)
        assert "other-secret" not in str(caught.value)


async def test_a_missing_bucket_is_distinguished_from_a_missing_object(opened):
    store = opened(bucket="no-such-bucket")
    for call in (
        store.stat("a"),
        store.read("a"),
        store.write("a", b"x"),
        store.children(),
        store.delete(["a"]),
    ):
        with pytest.raises(BucketNotFound):
            await call
    with pytest.raises(NotFound) as caught:
        await opened().stat("a")
    assert type(caught.value) is NotFound


@pytest.mark.parametrize("bucket", ["B", "ab", "under_score", "-a-"])
async def test_what_cannot_be_a_bucket_is_none(opened, bucket):
    with pytest.raises(BucketNotFound, match="not a name of a bucket"):
        await opened(bucket=bucket).stat("a")


async def test_a_name_that_is_too_long_is_refused(opened):
    with pytest.raises(InvalidSpec, match=r"1,023 bytes|InvalidObjectName"):
        await opened().write("/".join(["x" * 250] * 5), b"1")


async def test_a_bucket_elsewhere_is_named_with_its_endpoint(oss, opened):
    oss.elsewhere["bucket"] = "oss-cn-beijing.aliyuncs.com"
    error, problem = await refusal(opened())
    assert type(error) is InvalidSpec
    assert "it is at oss-cn-beijing.aliyuncs.com" in problem.measured
    assert "OSS_ENDPOINT=https://oss-cn-beijing.aliyuncs.com" in problem.remedy


async def test_another_region_than_the_endpoints_is_named(opened):
    error, problem = await refusal(opened(**KEYS | {"OSS_REGION": "cn-beijing"}))
    assert type(error) is InvalidSpec
    assert "not in the configured region" in problem.what
    assert "signed for the region cn-beijing" in problem.measured
    assert "OSS_REGION" in problem.remedy


async def test_an_archived_object_has_to_be_restored(oss, opened):
    oss.buckets["bucket"].objects["a"] = StoredObject(b"1", storage_class="ColdArchive")
    error, problem = await refusal(opened())
    assert type(error) is InvalidSpec
    assert "archived" in problem.what
    assert "Restore it" in problem.remedy


async def test_a_clock_that_is_wrong_is_named(oss, opened):
    oss.shift = 3600
    error, problem = await refusal(opened())
    assert type(error) is AccessDenied
    assert "Set the clock" in problem.remedy


async def test_expired_temporary_keys_may_be_renewed(oss, opened):
    oss.accounts["STS.k"] = Account("s", "t", expires=1.0)
    held = {"OSS_ACCESS_KEY_ID": "STS.k", "OSS_ACCESS_KEY_SECRET": "s", "OSS_SESSION_TOKEN": "t"}
    error, problem = await refusal(opened(**held, OSS_REGION="cn-hangzhou"))
    assert type(error) is Unavailable
    assert "expired" in problem.what


async def test_a_key_of_kms_that_is_denied_is_named(oss, opened, monkeypatch):
    async def forbidden(request, signed, stored):
        raise OssError("AccessDenied", FORBIDDEN_BY_KMS)

    await opened().write("a", b"1")
    monkeypatch.setattr(oss, "_get", forbidden)
    error, problem = await refusal(opened())
    assert type(error) is AccessDenied
    assert "KMS key" in problem.what


async def test_reading_may_be_allowed_where_listing_is_not(oss, opened):
    store = opened()
    await store.write("a", b"1")
    oss.denied.add("ListObjects")
    assert bytes(await store.read("a")) == b"1"
    with pytest.raises(AccessDenied, match=r"may not list.*oss:ListObjects"):
        [entry async for entry in store.entries()]


async def test_public_buckets_need_no_keys(oss, opened):
    await opened().write("d/a", b"1")
    store = opened(OSS_SKIP_SIGNATURE="true", OSS_REGION="cn-hangzhou")
    with pytest.raises(AccessDenied):
        await store.read("d/a")
    oss.anonymous.add("bucket")
    assert bytes(await store.read("d/a")) == b"1"
    assert await store.children() == ["d/"]
    assert "authorization" not in oss.requests[-1][3]


async def test_what_is_too_much_is_asked_again(oss, opened):
    store = opened()
    oss.busy = 1
    await store.write("a", b"1")
    oss.busy = 9
    with pytest.raises(Throttled):
        await store.read("a")


async def test_a_response_that_is_cut_is_requested_again(oss, opened):
    store = opened()
    await store.write("a", bytes(300_000))
    oss.cuts = 1
    assert bytes(await store.read("a", 10, 200_000)) == bytes(200_000)
    oss.cuts = 9
    with pytest.raises(Unavailable):
        await store.read("a")


async def test_a_closed_client_connects_again(opened):
    store = opened()
    await store.write("a", b"1")
    await store.close()
    assert bytes(await store.read("a")) == b"1"


async def test_a_closed_port_is_unavailable(opened):
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        await opened(endpoint="http://127.0.0.1:1").stat("a")


@pytest.mark.parametrize("status", [200, 301, 403, 404])
async def test_a_web_page_is_not_oss(answering, opened, status):
    async def page(request):
        return web.Response(status=status, text="<html>Hello</html>", content_type="text/html")

    store = opened(endpoint=await answering(page))
    with pytest.raises((InvalidSpec, Unavailable), match=r"does not respond as OSS|redirects"):
        [entry async for entry in store.entries()]


async def test_a_server_without_an_end_is_cut(answering, opened):
    async def endless(request):
        response = web.StreamResponse(headers={"x-oss-request-id": "1"})
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b"<ListBucketResult>" * 4096)
        return response

    store = opened(endpoint=await answering(endless))
    with pytest.raises(Unavailable, match="listing"):
        [entry async for entry in store.entries()]


@pytest.fixture
async def over_tls(oss, private_ca):
    """Port of the imitation over TLS, with a certificate for `bucket.store` and 127.0.0.1."""
    context = private_ca.server_context("bucket.store", "127.0.0.1")
    async with tls_relay(context, int(oss.endpoint.rpartition(":")[2])) as port:
        yield port


async def used(config, limits):
    store = open_store(Uri("oss", "bucket"), config, limits)
    try:
        await store.write("a", b"1")
        return bytes(await store.read("a"))
    finally:
        await store.close()


async def test_a_private_certificate_is_trusted_if_it_is_named(over_tls, private_ca, quick):
    config = StoreConfig(endpoint=f"https://127.0.0.1:{over_tls}", credentials=KEYS)
    with pytest.raises(InvalidSpec, match="not trusted"):
        await used(config, quick)
    network = Network(CaBundle(private_ca.pem, ("test",)))
    assert await used(msgspec.structs.replace(config, network=network), quick) == b"1"


async def test_requests_go_through_a_proxy_to_the_host_of_the_bucket(over_tls, private_ca, proxy, quick):
    proxy.ports["bucket.store:443"] = over_tls
    network = Network(CaBundle(private_ca.pem, ("test",)), read_proxies({"HTTPS_PROXY": proxy.url}))
    config = StoreConfig(endpoint="https://store", credentials=KEYS, network=network)
    assert await used(config, quick) == b"1"


async def test_an_address_of_ipv6_has_the_bucket_in_the_path(quick):
    with serving(host="::1") as server:
        assert server.endpoint.startswith("http://[::1]:")
        config = StoreConfig(endpoint=server.endpoint, credentials=KEYS)
        assert await used(config, quick) == b"1"
        store = open_store(Uri("oss", "bucket"), config, quick)
        client = Client(store.request_builder)
        assert (await client.get(await store.stat("a")))[:2] == (200, True)
        await client.close()
        await store.close()


async def test_requests_are_those_of_alibabas_operations(oss, opened):
    """The engine describes its requests itself; what it asks for is what Alibaba's client asks for."""
    store, client, part = opened(), client_of(oss), bytes(100 << 10)
    upload = await store.multipart.begin("m", len(part))
    parts = [await store.multipart.send("m", upload, 1, part)]
    await store.multipart.complete("m", upload, parts)
    await store.multipart.abort("m", await store.multipart.begin("m", len(part)))
    for call in (store.write("a b", b"1"), store.stat("a b"), store.read("a b"), store.delete(["d"])):
        await call
    await store.server_copy.copy("a b", "c")
    [entry async for entry in store.entries()]
    ours = asked(oss)
    client.uploader(part_size=len(part)).upload_from(
        sdk.PutObjectRequest("bucket", "m"), io.BytesIO(part * 2)
    )
    begun = client.initiate_multipart_upload(sdk.InitiateMultipartUploadRequest("bucket", "m"))
    client.abort_multipart_upload(sdk.AbortMultipartUploadRequest("bucket", "m", begun.upload_id))
    client.put_object(sdk.PutObjectRequest("bucket", "a b", body=b"1"))
    client.head_object(sdk.HeadObjectRequest("bucket", "a b"))
    client.get_object(sdk.GetObjectRequest("bucket", "a b"))
    client.delete_multiple_objects(
        sdk.DeleteMultipleObjectsRequest("bucket", objects=[sdk.DeleteObject("d")])
    )
    client.copy_object(sdk.CopyObjectRequest("bucket", "c", source_key="a b"))
    client.list_objects_v2(sdk.ListObjectsV2Request("bucket", max_keys=1000))
    assert ours == asked(oss)
    assert len(ours) == 10


def asked(server):
    """By operation: the method, the path, and the parameters' names that a request cannot lack."""
    found = {}
    for method, operation, path, _ in server.requests:
        place, _, query = path.partition("?")
        names = {name for name, _ in raw_query(query)} - {"encoding-type", "sequential"}
        found[operation] = (method, "" if operation == "HeadObject" else place, names)
    server.requests.clear()
    return found


async def test_half_a_key_pair_is_refused(opened):
    with pytest.raises(CredentialsMissing, match="OSS_ACCESS_KEY_SECRET is missing"):
        opened(OSS_ACCESS_KEY_ID="k", OSS_REGION="cn-hangzhou")

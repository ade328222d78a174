"""What S3 services say and accept besides the contract, on two implementations: versitygw and MinIO."""

import contextlib
import functools
import json
import time

import pytest

from podferry.contract.errors import AccessDenied, InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.network.settings import read_network
from podferry.storage.s3.sigv4 import SigV4Signer
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.connect_proxy import connect_proxy, tls_relay
from tests.support.private_ca import PrivateCa
from tests.support.real_servers import minio as started_minio
from tests.support.real_servers import s3_client
from tests.support.real_servers import versitygw as started_versitygw
from tests.support.request_builder_contract import Client
from tests.support.store_calls import KEYS, PART, listed

LIMITS = Limits(retries=1, retry_seconds=5, part_bytes=PART)
SERVERS = ["versitygw", "minio"]
ANONYMOUS = {"AWS_SKIP_SIGNATURE": "true"}
STARTED = {"versitygw": started_versitygw, "minio": started_minio}


@pytest.fixture(params=SERVERS)
def server(request):
    return request.getfixturevalue(request.param)


def opened(endpoint, key, keys=KEYS, **fields):
    return open_store(Uri("s3", "bucket", key), StoreConfig(endpoint, credentials=keys, **fields), LIMITS)


async def every_road(store):
    """Use the engine, the listing of our own, the connection pool and an upload in parts."""
    await store.write("a/b c", b"0123456789")
    await store.write("big", iter([b"x" * PART, b"y"]))
    assert await listed(store) == ["a/b c", "big"]
    assert await store.children() == ["a/", "big"]
    assert bytes(await store.read("a/b c", 2, 3)) == b"234"
    (entry,) = [entry async for entry in store.entries() if entry.size == 10]
    upload = await store.multipart.begin("parts", PART)
    await store.multipart.complete("parts", upload, [await store.multipart.send("parts", upload, 1, b"part")])
    await store.server_copy.copy("parts", "copy")
    assert bytes(await store.read("copy")) == b"part"
    if store.request_builder is not None:
        client = Client(store.request_builder)
        status, plain, _, body = await client.get(entry, 1, 4)
        assert (status, plain, body) == (206, True, b"1234")
        await client.close()
    await store.close()


async def test_a_requester_who_pays_is_accepted_on_every_road(server, fresh):
    await every_road(opened(server, fresh, {**KEYS, "AWS_REQUEST_PAYER": "requester"}))


@pytest.mark.parametrize("name", SERVERS)
async def test_virtual_hosts_over_tls_through_a_proxy(name, tmp_path, fresh):
    ca = PrivateCa()
    (tmp_path / "ca.pem").write_text(ca.pem)
    options = {"minio": {"MINIO_DOMAIN": "store"}}.get(name, {})
    arguments = ("us-east-1", "--virtual-domain", "store") if name == "versitygw" else ()
    with STARTED[name](tmp_path, *KEYS.values(), *arguments, **options) as endpoint:
        port = int(endpoint.rpartition(":")[2])
        context = ca.server_context("bucket.store", "store")
        async with connect_proxy() as proxy, tls_relay(context, port) as tls:
            proxy.ports = {"bucket.store:443": tls, "store:443": tls}
            network = read_network({"HTTPS_PROXY": proxy.url, "AWS_CA_BUNDLE": str(tmp_path / "ca.pem")})
            keys = {**KEYS, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}
            store = opened("https://store", fresh, keys, network=network)
            assert store.request_builder.origin.host == "bucket.store"
            await every_road(_without_pool(store))
            assert set(proxy.requests) == {"CONNECT bucket.store:443"}


def _without_pool(store):
    """Its client here knows no proxy; `tests/storage/network` has the pool behind one."""
    store.__dict__["request_builder"] = None
    return store


async def test_ipv6(tmp_path, fresh):
    with started_minio(tmp_path, *KEYS.values(), host="[::1]") as endpoint:
        assert endpoint.startswith("http://[::1]:")
        await every_road(opened(endpoint, fresh))


async def test_a_bucket_in_another_region_is_named_with_it(tmp_path, fresh):
    with started_minio(tmp_path, *KEYS.values(), MINIO_REGION="eu-west-3") as endpoint:
        store = opened(endpoint, fresh)
        for call in (
            store.stat("a"),
            store.children(),
            store.write("a", b"x"),
            store.multipart.begin("a", PART),
        ):
            with pytest.raises(InvalidSpec, match=r"it is in eu-west-3.*Set the region eu-west-3"):
                await call
        await store.close()
        await every_road(opened(endpoint, fresh, region="eu-west-3"))


async def test_a_wrong_clock_is_named(server, fresh, monkeypatch):
    skewed = functools.partial(SigV4Signer, clock=lambda: time.time() - 3600)
    monkeypatch.setattr("podferry.storage.s3.client.SigV4Signer", skewed)
    store = opened(server, fresh)
    with pytest.raises(AccessDenied, match=r"rejects the time of the request.*Set the clock"):
        await store.children()
    await store.close()


async def test_a_session_token_that_the_service_does_not_know_is_named(minio, fresh):
    store = opened(minio, fresh, {**KEYS, "AWS_SESSION_TOKEN": "unknown"})
    with pytest.raises(AccessDenied, match=r"rejects the credentials.*have not expired"):
        await store.children()
    await store.close()


@contextlib.contextmanager
def readable(endpoint, *actions):
    """The bucket, with these actions allowed to all."""
    everything = ["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"]
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": ["*"]},
        "Action": list(actions),
        "Resource": everything,
    }
    with contextlib.closing(s3_client(endpoint, *KEYS.values())) as client:
        client.put_bucket_policy(
            Bucket="bucket", Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        )
        try:
            yield
        finally:
            client.delete_bucket_policy(Bucket="bucket")


async def test_a_public_bucket_is_read_without_credentials(server, fresh):
    writer = opened(server, fresh)
    await writer.write("a", b"0123456789")
    await writer.close()
    with readable(server, "s3:GetObject", "s3:ListBucket"):
        store = opened(server, fresh, ANONYMOUS)
        assert await listed(store) == ["a"]
        assert bytes(await store.read("a")) == b"0123456789"
        client = Client(store.request_builder)
        assert (await client.get(await store.stat("a")))[3] == b"0123456789"
        await client.close()
        for call in (store.write("a", b"x"), store.delete(["a"])):
            with pytest.raises(AccessDenied):
                await call
        await store.close()


async def test_who_may_read_but_not_list_is_shown_what_is_missing(server, fresh):
    writer = opened(server, fresh)
    await writer.write("d/a", b"0123456789")
    await writer.close()
    with readable(server, "s3:GetObject"):
        store = opened(server, fresh, ANONYMOUS)
        for call in (listed(store), store.children()):
            with pytest.raises(AccessDenied, match=r"may not list.*s3:ListBucket"):
                await call
        await store.close()
        config = StoreConfig(server, credentials=ANONYMOUS)
        with pytest.raises(AccessDenied, match=r"may not list.*a single object"):
            await open_dataset(Uri("s3", "bucket", f"{fresh}/d"), config)
        listing = await open_dataset(Uri("s3", "bucket", f"{fresh}/d/a"), config)
        assert bytes(await listing.store.read("a")) == b"0123456789"
        await listing.store.close()

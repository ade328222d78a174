import pytest
from aiohttp import web

from podferry.contract.errors import CredentialsMissing, NotFound, Unavailable
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.store_calls import KEYS


async def test_new_keys_sign_later_requests(answering, quick, monkeypatch):
    signed, held = [], dict(KEYS)

    async def answer(request):
        signed.append(request.headers["Authorization"].partition("Credential=")[2].partition("/")[0])
        return web.Response(
            text="1", headers={"Last-Modified": "Sat, 21 Nov 2026 17:00:00 GMT", "ETag": '"a"'}
        )

    monkeypatch.setattr("podferry.storage.obstore.client.REFRESH_SECONDS", 0.0)
    endpoint = await answering(answer)
    for reload_credentials in (None, lambda: dict(held)):
        held.update(KEYS)
        config = StoreConfig(endpoint=endpoint, credentials=KEYS, reload_credentials=reload_credentials)
        store = open_store(parse_uri("s3://bucket/x"), config, quick)
        await store.read("a")
        held["AWS_ACCESS_KEY_ID"] = "renewed"
        await store.read("a")
    assert signed == ["key-of-tests"] * 3 + ["renewed"]


async def test_the_engine_retries(answering, quick):
    requests = []

    async def flaky(request):
        requests.append(request.method)
        if len(requests) == 1:
            return web.Response(status=503)
        return web.Response(
            body=b"0123456789", headers={"ETag": '"t"', "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT"}
        )

    endpoint = await answering(flaky)
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), quick)
    assert bytes(await store.read("a")) == b"0123456789"
    assert requests == ["GET", "GET"]


async def test_credentials_of_the_environment_are_not_mixed_with_a_secrets(answering, quick, monkeypatch):
    seen = []

    async def look(request):
        seen.append((request.host, dict(request.headers)))
        return web.Response(status=404)

    endpoint = await answering(look)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-somebody-else")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-somebody-else")
    monkeypatch.setenv("AWS_REGION", "mars-1")
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), quick)
    with pytest.raises(NotFound):
        await store.stat("a")
    for _, headers in seen:
        assert "key-of-tests" in headers["Authorization"]
        assert "us-east-1" in headers["Authorization"]
        assert "x-amz-security-token" not in {name.lower() for name in headers}


async def test_anonymous_requests_are_not_signed(answering, quick):
    seen = []

    async def look(request):
        seen.append(dict(request.headers))
        return web.Response(status=404)

    endpoint = await answering(look)
    config = StoreConfig(endpoint=endpoint, credentials={"AWS_SKIP_SIGNATURE": "true"})
    with pytest.raises(NotFound):
        await open_store(parse_uri("s3://bucket/x"), config, quick).stat("a")
    assert seen
    assert all("Authorization" not in headers for headers in seen)


def test_missing_credentials_are_reported_at_once():
    held = {"AWS_EC2_METADATA_DISABLED": "true"}
    for engine in ("obstore", "fsspec"):
        with pytest.raises(CredentialsMissing, match="AWS_ACCESS_KEY_ID"):
            open_store(parse_uri(f"s3://bucket/x?engine={engine}"), StoreConfig(credentials=held))


async def test_virtual_hosts_if_configured(answering, quick):
    hosts = []

    async def look(request):
        hosts.append((request.host.partition(":")[0], request.path))
        return web.Response(status=404)

    endpoint = (await answering(look)).replace("127.0.0.1", "localhost")
    config = StoreConfig(endpoint=endpoint, credentials={**KEYS, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"})
    with pytest.raises((NotFound, Unavailable)):
        await open_store(Uri("s3", "bucket", "x"), config, quick).stat("a")
    assert all(host == "bucket.localhost" and path == "/x/a" for host, path in hosts[:1])

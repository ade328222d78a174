import time

import pytest
from aiohttp import web

from podferry.contract.errors import BucketNotFound, Corrupt, CredentialsMissing, InvalidSpec, NotFound
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.patience import PATIENCE
from tests.support.store_calls import all_calls, listed


@pytest.mark.parametrize("own_requests", [True, False])
async def test_keys_that_cannot_be_file_names_are_reported(store, s3, monkeypatch, own_requests):
    """Our own requests list them, to be refused or excluded by name; obstore cannot."""
    s3.put_object(Bucket="bucket", Key=f"{store.uri.key}/a//b", Body=b"x")
    if own_requests:
        assert await listed(store) == ["a//b"]
        return
    monkeypatch.setattr("podferry.storage.s3.listing.credentials_provider", lambda access: None)
    with pytest.raises(Corrupt, match="is not a valid file name, and the listing stops there"):
        await listed(store)


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
async def test_a_missing_bucket_is_distinguished_from_a_missing_object(engine, config, quick):
    uri = parse_uri(f"s3://no-such-bucket/some/where?engine={engine}")
    store = open_store(uri, config, quick)
    found = await all_calls(store)
    assert [type(error) for error in found] == [BucketNotFound] * len(found)
    assert "s3://no-such-bucket/" in str(found[0])
    assert config.endpoint in str(found[0])
    await store.close()


async def test_a_missing_object_is_not_a_missing_bucket(store):
    for call in (store.stat("none"), store.read("none")):
        with pytest.raises(NotFound) as caught:
            await call
        assert type(caught.value) is NotFound


async def test_a_missing_object_next_to_a_key_that_is_no_file_name_is_missing(store, s3):
    """The check for the bucket lists it: what obstore cannot list is there, and so is the bucket."""
    s3.put_object(Bucket="bucket", Key=f"{store.uri.key}/a//b", Body=b"x")
    for call in (store.stat("none"), store.read("none")):
        with pytest.raises(NotFound) as caught:
            await call
        assert type(caught.value) is NotFound


async def test_an_absent_metadata_service_costs_seconds_and_says_what_is_missing(quick):
    held = {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}
    store = open_store(
        parse_uri("s3://bucket/x"), StoreConfig(endpoint="http://127.0.0.1:1", credentials=held), quick
    )
    began = time.monotonic()
    found = await all_calls(store)
    assert [type(error) for error in found] == [CredentialsMissing] * len(found)
    assert "AWS_ACCESS_KEY_ID" in str(found[0])
    assert time.monotonic() - began < PATIENCE


async def test_a_web_server_is_not_a_missing_container(answering, quick):
    async def page(request):
        return web.Response(status=404, text="<html>Not Found", content_type="text/html")

    keys = {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_SKIP_SIGNATURE": "true"}
    store = open_store(
        parse_uri("az://bucket/x"), StoreConfig(await answering(page), credentials=keys), quick
    )
    found = await all_calls(store)
    await store.close()
    assert [type(error) for error in found] == [InvalidSpec] * len(found)
    assert "the endpoint of az://bucket/x does not respond as Azure Blob Storage (HTTP 404" in str(found[0])

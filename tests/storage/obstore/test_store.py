import asyncio
import time

import msgspec
import obstore
import pytest
from aiohttp import web

from podferry.contract.errors import (
    AccessDenied,
    BucketNotFound,
    Corrupt,
    InvalidSpec,
    NotFound,
    Throttled,
    Unavailable,
)
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.patience import PATIENCE
from tests.support.store_calls import KEYS, all_calls, listed

AZURE_KEYS = {"AZURE_STORAGE_ACCOUNT_NAME": "k", "AZURE_STORAGE_ACCOUNT_KEY": "b3RoZXI="}


async def test_a_backslash_is_refused_where_it_would_become_a_slash(config):
    store = open_store(parse_uri("az://bucket"), StoreConfig(config.endpoint, credentials=AZURE_KEYS))
    with pytest.raises(InvalidSpec, match="Azure stores a backslash as a slash"):
        await store.write("back\\slash", b"x")
    await store.close()


async def test_directory_markers_are_skipped(store, s3):
    for key, body in {"m/": b"", "m/a": b"", "m/b": b"x", "lone/": b"", "n/o/": b"", "n/e": b""}.items():
        s3.put_object(Bucket="bucket", Key=f"{store.uri.key}/{key}", Body=body)
    s3.put_object(Bucket="bucket", Key=f"{store.uri.key}/", Body=b"")
    assert await listed(store) == ["m/a", "m/b", "n/e"]
    assert await listed(store, "m") == ["m/a", "m/b"]
    assert await listed(store, "lone") == []
    assert await store.children("m") == ["a", "b"]
    with pytest.raises(NotFound):
        await store.stat("lone")


async def test_listings_are_paged(fresh_s3, config):
    store = open_store(fresh_s3, config)  # with patience: the server needs a second for a page
    for start in range(0, 1203, 16):
        await asyncio.gather(*(store.write(f"p/{i:04}", b"x") for i in range(start, min(start + 16, 1203))))
    assert await listed(store) == [f"p/{i:04}" for i in range(1203)]
    assert len(await store.children("p")) == 1203
    await store.delete(f"p/{i:04}" for i in range(1203))
    assert await listed(store) == []


def test_a_listing_that_is_open_when_the_loop_ends_is_closed_without_an_error(monkeypatch):
    async def pages():
        yield [{"path": "d/empty", "size": 0, "e_tag": "x"}, {"path": "d/file", "size": 1, "e_tag": "x"}]
        await asyncio.sleep(60)

    monkeypatch.setattr(obstore, "list", lambda *args, **options: pages())
    config = StoreConfig(endpoint="http://127.0.0.1:1/k", credentials=AZURE_KEYS)
    listings = [open_store(parse_uri("az://bucket/d"), config).entries() for _ in range(20)]

    async def first_entries():
        return [(await anext(listing)).name for listing in listings]

    errors = []
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(lambda loop, context: errors.append(context))
        assert runner.run(first_entries()) == ["file"] * 20
    assert errors == []


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
async def test_an_unreachable_endpoint_is_unavailable_and_reported(engine, quick):
    uri = parse_uri(f"s3://bucket/x?engine={engine}")
    store = open_store(uri, StoreConfig(endpoint="http://127.0.0.1:1", credentials=KEYS), quick)
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:1"):
        await store.stat("a")
    assert time.monotonic() - began < PATIENCE
    await store.close()


async def test_every_call_to_an_unreachable_endpoint_is_unavailable(quick):
    store = open_store(
        parse_uri("s3://bucket/x"), StoreConfig(endpoint="http://127.0.0.1:1", credentials=KEYS), quick
    )
    found = await all_calls(store)
    assert [type(error) for error in found] == [Unavailable] * len(found)
    assert not any("secret-of-tests" in str(error) + str(error.__cause__) for error in found)


NOT_THE_OBJECT = {
    "all of it": (web.Response(text="<html>", content_type="text/html"), "not partial"),
    "a listing": (web.Response(text="<ListBucketResult/>", content_type="application/xml"), "not partial"),
    "nothing": (web.Response(status=204), "no size"),
    "a part without its range": (web.Response(status=206, body=b"bc"), "no Content-Range"),
    "another part": (
        web.Response(status=206, body=b"cd", headers={"Content-Range": "bytes 2-3/9"}),
        "another range",
    ),
}


@pytest.mark.parametrize("case", NOT_THE_OBJECT)
async def test_a_response_that_is_not_what_was_requested_is_named(answering, quick, case):
    response, measured = NOT_THE_OBJECT[case]

    async def answer(request):
        copy = web.Response(status=response.status, body=response.body, headers=response.headers)
        return copy if request.method == "GET" else web.Response(status=403)

    store = open_store(
        parse_uri("s3://bucket/x"), StoreConfig(endpoint=await answering(answer), credentials=KEYS), quick
    )
    expected = rf"response for s3://bucket/x/a is not what was requested \({measured}"
    with pytest.raises(Unavailable, match=expected):
        await store.read("a", 1, 2)


async def test_a_server_that_never_responds_is_unavailable(answering, quick):
    async def silent(request):
        await asyncio.sleep(30)

    endpoint = await answering(silent)
    limits = msgspec.structs.replace(quick, stall_seconds=0.3, retries=0)
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), limits)
    began = time.monotonic()
    found = await all_calls(store)
    assert [type(error) for error in found] == [Unavailable] * len(found)
    assert time.monotonic() - began < PATIENCE


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (503, "", Unavailable),
        (500, "InternalError", Unavailable),
        (503, "SlowDown", Throttled),
        (429, "", Throttled),
        (403, "InvalidAccessKeyId", AccessDenied),
        (403, "", AccessDenied),
        (401, "", AccessDenied),
        (400, "ExpiredToken", Unavailable),
        (404, "NoSuchBucket", BucketNotFound),
        (404, "XAdminUserNotFound", AccessDenied),
    ],
)
async def test_error_responses_become_the_error_tree(answering, quick, status, code, expected):
    async def answer(request):
        await request.read()
        return web.Response(status=status, text=f"<Error><Code>{code}</Code></Error>" if code else "")

    endpoint = await answering(answer)
    limits = msgspec.structs.replace(quick, retries=0)
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), limits)
    found = await all_calls(store)
    # A HEAD has no body, so its answer is known by its status alone.
    exact = [error for index, error in enumerate(found) if index != 2]
    assert [type(error) for error in exact] == [expected] * len(exact)
    assert isinstance(found[2], expected if status not in {503, 400} else Exception)
    assert all("AWS_ACCESS_KEY_ID" in str(error) for error in exact if isinstance(error, AccessDenied))
    assert not any("key-of-tests" in str(error) for error in found)


async def test_a_short_response_is_corrupt(answering, quick):
    async def short(request):
        headers = {
            "ETag": '"t"',
            "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT",
            "Content-Range": "bytes 2-4/5",
        }
        return web.Response(status=206, body=b"234", headers=headers)

    endpoint = await answering(short)
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), quick)
    with pytest.raises(Corrupt, match="3 bytes came; requested 6 from 2"):
        await store.read("a", 2, 6)

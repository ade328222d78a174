import asyncio
import time

import msgspec
import obstore
import pytest
from aiohttp import web

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    BucketNotFound,
    Corrupt,
    CredentialsMissing,
    NotFound,
    Throttled,
    Unavailable,
)
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig, WriteMode

KEYS = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
PART = 5 << 20


@pytest.fixture
def store(fresh_s3, config, quick):
    return open_store(fresh_s3, config, quick)


@pytest.fixture
async def answering():
    """Starts servers with a given handler; returns their endpoints."""
    runners = []

    async def start(handler):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    yield start
    for runner in runners:
        await runner.cleanup()


async def listed(store, prefix=""):
    return sorted([entry.name async for entry in store.entries(prefix)])


async def all_calls(store):
    """The error of every call."""

    async def entries():
        return await listed(store)

    calls = [
        entries(),
        store.children(),
        store.stat("a"),
        store.read("a"),
        store.read("a", 1, 2),
        store.write("a", b"x"),
        store.write("a", b"x", WriteMode.CREATE),
        store.write("a", iter([b"x" * PART, b"y"])),
        store.delete(["a"]),
    ]
    return await asyncio.gather(*calls, return_exceptions=True)


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
    config = StoreConfig(endpoint="http://127.0.0.1:1", credentials=KEYS)
    listings = [open_store(parse_uri("s3://bucket/d"), config).entries() for _ in range(20)]

    async def first_entries():
        return [(await anext(listing)).name for listing in listings]

    errors = []
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(lambda loop, context: errors.append(context))
        assert runner.run(first_entries()) == ["file"] * 20
    assert errors == []


async def test_keys_that_cannot_be_file_names_are_reported(store, s3):
    s3.put_object(Bucket="bucket", Key=f"{store.uri.key}/a//b", Body=b"x")
    with pytest.raises(Exception, match="is not a valid file name, and the listing stops there"):
        await listed(store)


@pytest.mark.parametrize("ending", ["raises", "cancelled"])
async def test_an_abandoned_upload_leaves_no_parts(store, s3, ending):
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def body():
        for i in range(24):
            if i == 20:
                loop.call_soon_threadsafe(started.set)
                if ending == "raises":
                    raise KeyError("mine")
                time.sleep(0.2)
            yield b"x" * (1 << 20)

    task = asyncio.create_task(store.write("big", body()))
    await started.wait()
    if ending == "cancelled":
        task.cancel()
    with pytest.raises((KeyError, asyncio.CancelledError)):
        await task
    uploads = s3.list_multipart_uploads(Bucket="bucket").get("Uploads", [])
    assert [item for item in uploads if item["Key"].startswith(store.uri.key)] == []
    assert await listed(store) == []


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


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
async def test_an_unreachable_endpoint_is_unavailable_and_reported(engine, quick):
    uri = parse_uri(f"s3://bucket/x?engine={engine}")
    store = open_store(uri, StoreConfig(endpoint="http://127.0.0.1:1", credentials=KEYS), quick)
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:1"):
        await store.stat("a")
    assert time.monotonic() - began < 25
    await store.close()


async def test_every_call_to_an_unreachable_endpoint_is_unavailable(quick):
    store = open_store(
        parse_uri("s3://bucket/x"), StoreConfig(endpoint="http://127.0.0.1:1", credentials=KEYS), quick
    )
    found = await all_calls(store)
    assert [type(error) for error in found] == [Unavailable] * len(found)
    assert not any("secret-of-tests" in str(error) + str(error.__cause__) for error in found)


async def test_a_server_that_never_responds_is_unavailable(answering, quick):
    async def silent(request):
        await asyncio.sleep(30)

    endpoint = await answering(silent)
    limits = msgspec.structs.replace(quick, stall_seconds=0.3, retries=0)
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), limits)
    began = time.monotonic()
    found = await all_calls(store)
    assert [type(error) for error in found] == [Unavailable] * len(found)
    assert time.monotonic() - began < 10


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


@pytest.mark.parametrize(("size", "expected"), [(None, Unavailable), (5, Unavailable), (6, AlreadyExists)])
async def test_a_create_whose_connection_breaks_exists_only_if_certain(answering, quick, size, expected):
    async def breaking(request):
        if request.method == "PUT":
            request.transport.abort()
            return web.Response()
        if size is None:
            return web.Response(status=404)
        headers = {
            "ETag": '"t"',
            "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT",
            "Content-Length": str(size),
        }
        return web.Response(headers=headers)

    endpoint = await answering(breaking)
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), quick)
    with pytest.raises(expected):
        await store.write("a", b"12345", WriteMode.CREATE)


async def test_a_conflict_between_creates_is_not_an_existing_object(answering, quick):
    async def conflict(request):
        await request.read()
        return web.Response(status=409, text="<Error><Code>ConditionalRequestConflict</Code></Error>")

    endpoint = await answering(conflict)
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), quick)
    with pytest.raises(Unavailable):
        await store.write("a", b"x", WriteMode.CREATE)


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


async def test_an_absent_metadata_service_costs_seconds_and_says_what_is_missing(quick):
    held = {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}
    store = open_store(
        parse_uri("s3://bucket/x"), StoreConfig(endpoint="http://127.0.0.1:1", credentials=held), quick
    )
    began = time.monotonic()
    found = await all_calls(store)
    assert [type(error) for error in found] == [CredentialsMissing] * len(found)
    assert "AWS_ACCESS_KEY_ID" in str(found[0])
    assert time.monotonic() - began < 5


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

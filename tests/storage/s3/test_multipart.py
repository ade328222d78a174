"""Multipart uploads against scripted servers, with the various responses of S3 services."""

import asyncio
import hashlib
import re

import msgspec
import pytest
from aiohttp import ClientSession, web

from podferry.contract.errors import (
    AccessDenied,
    BucketNotFound,
    Changed,
    CredentialsMissing,
    InvalidSpec,
    NotFound,
    Throttled,
    Unavailable,
)
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import crc64, object_checksum
from podferry.storage.factory import open_store
from podferry.storage.multipart import UploadedPart
from podferry.storage.s3.credentials import credentials_provider
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.s3.multipart import completion_xml, multipart_etag
from podferry.storage.s3.sigv4 import UNSIGNED_PAYLOAD
from podferry.storage.store import StoreConfig

KEYS = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
PART = 5 << 20
STARTED = "<InitiateMultipartUploadResult><UploadId>id&amp;1</UploadId></InitiateMultipartUploadResult>"
DONE = "<CompleteMultipartUploadResult/>"
KNOWS = {"x-amz-checksum-algorithm": "CRC64NVME"}
CHECKSUM = "x-amz-checksum-crc64nvme"
DATA = b"0123456789"
RECEIPT = UploadedPart(1, '"781e5e245d69b566979b86e28d23f2c7"', crc64(DATA), len(DATA))


def error(status, code):
    return web.Response(status=status, text=f"<Error><Code>{code}</Code></Error>")


def kind_of(request):
    """The call that a request belongs to."""
    if "uploads" in request.query:
        return "begin"
    names = {"PUT": "send", "POST": "complete", "DELETE": "abort", "HEAD": "stat", "GET": "list"}
    return names[request.method]


def there(size=10, **headers):
    found = {
        "Content-Length": str(size),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return lambda: web.Response(headers=found)


class Server:
    """Responds from a table by call; the last response of a call is repeated."""

    def __init__(self):
        self.answers = {}
        self.seen = []

    async def answer(self, request):
        kind = kind_of(request)
        body = await request.read()
        self.seen.append((kind, request, body))
        planned = self.answers.get(kind) or [lambda: error(404, "NoSuchUpload")]
        made = (planned.pop(0) if len(planned) > 1 else planned[0])()
        if made is None:
            request.transport.abort()
            return web.Response()
        return made

    def of(self, kind):
        return [(request, body) for found, request, body in self.seen if found == kind]


@pytest.fixture
async def served():
    """Starts servers; returns their endpoints."""
    runners = []

    async def start(handler):
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
async def opened(quick):
    stores = []

    def opened(endpoint, held=KEYS, reload_credentials=None, **limits):
        config = StoreConfig(endpoint=endpoint, credentials=dict(held), reload_credentials=reload_credentials)
        stores.append(
            open_store(Uri("s3", "bucket", "run"), config, msgspec.structs.replace(quick, **limits))
        )
        return stores[-1].multipart

    yield opened
    for store in stores:
        await store.close()


@pytest.fixture
def server():
    server = Server()
    server.answers = {
        "begin": [lambda: web.Response(text=STARTED, headers=KNOWS)],
        "send": [lambda: web.Response(headers={"ETag": RECEIPT.tag})],
        "complete": [lambda: web.Response(text=DONE)],
        "abort": [lambda: web.Response(status=204)],
        "stat": [there()],
    }
    return server


@pytest.fixture
async def parts(server, served, opened):
    return opened(await served(server.answer))


async def test_checksums_go_with_every_part_and_no_body_is_signed(server, parts):
    upload = await parts.begin("a", PART)
    assert upload == "crc64nvme:id&1"
    assert await parts.send("a", upload, 1, memoryview(DATA)) == RECEIPT
    await parts.complete("a", upload, [RECEIPT])
    ((begin, _),) = server.of("begin")
    assert begin.headers["x-amz-checksum-algorithm"] == "CRC64NVME"
    assert begin.headers["x-amz-checksum-type"] == "FULL_OBJECT"
    ((send, body),) = server.of("send")
    assert body == DATA
    assert dict(send.query) == {"partNumber": "1", "uploadId": "id&1"}
    assert send.headers["x-amz-content-sha256"] == UNSIGNED_PAYLOAD
    assert CHECKSUM in re.search("SignedHeaders=([^,]+)", send.headers["Authorization"])[1]
    ((complete, body),) = server.of("complete")
    assert complete.headers[CHECKSUM] == send.headers[CHECKSUM]
    assert complete.headers["x-amz-mp-object-size"] == "10"
    assert send.headers[CHECKSUM].encode() in body


@pytest.mark.parametrize("status", [400, 501])
@pytest.mark.parametrize("code", ["InvalidRequest", "NotImplemented", "InvalidArgument"])
async def test_a_server_that_refuses_the_checksum_gets_signed_parts(server, parts, status, code):
    server.answers["begin"] = [lambda: error(status, code), lambda: web.Response(text=STARTED)]
    upload = await parts.begin("a", PART)
    assert upload == "sha256:id&1"
    await parts.complete("a", upload, [await parts.send("a", upload, 1, DATA)])
    ((send, _),) = server.of("send")
    assert send.headers["x-amz-content-sha256"] == hashlib.sha256(DATA).hexdigest()
    for request, body in (server.of("begin")[1], *server.of("send"), *server.of("complete")):
        assert not any("checksum" in name for name in map(str.lower, request.headers))
        assert b"Checksum" not in body
    began = len(server.of("begin"))
    assert await parts.begin("b", PART) == "sha256:id&1"
    assert len(server.of("begin")) == began + 1


async def test_a_server_that_ignores_the_checksum_gets_signed_parts_of_the_upload_it_began(server, parts):
    server.answers["begin"] = [lambda: web.Response(text=STARTED)]
    assert await parts.begin("a", PART) == "sha256:id&1"
    assert len(server.of("begin")) == 1


async def test_other_errors_are_not_blamed_on_the_checksum(server, parts):
    server.answers["begin"] = [lambda: error(400, "InvalidToken")] * 2 + [
        lambda: web.Response(text=STARTED, headers=KNOWS)
    ]
    with pytest.raises(AccessDenied):
        await parts.begin("a", PART)
    assert await parts.begin("a", PART) == "crc64nvme:id&1"


async def test_an_upload_keeps_its_verification_over_a_restart(server, parts, served, opened):
    again = opened(await served(server.answer))
    await again.send("a", "sha256:id&1", 1, DATA)
    await again.send("a", "crc64nvme:id&1", 1, DATA)
    signed, kept = [request for request, _ in server.of("send")]
    assert CHECKSUM not in signed.headers
    assert signed.headers["x-amz-content-sha256"] != UNSIGNED_PAYLOAD
    assert CHECKSUM in kept.headers


async def test_another_checksum_in_the_response_means_damage(server, parts):
    server.answers["send"] = [lambda: web.Response(headers={"ETag": '"t"', CHECKSUM: "AAAAAAAAAAA="})]
    with pytest.raises(Unavailable, match="arrived damaged"):
        await parts.send("a", "crc64nvme:id", 1, DATA)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (404, "NoSuchUpload", NotFound),
        (400, "InvalidPart", NotFound),
        (404, "NoSuchBucket", BucketNotFound),
        (403, "AccessDenied", AccessDenied),
        (403, "SignatureDoesNotMatch", AccessDenied),
        (400, "BadDigest", Unavailable),
        (400, "XAmzContentSHA256Mismatch", Unavailable),
        (400, "EntityTooSmall", InvalidSpec),
        (412, "PreconditionFailed", Changed),
        (409, "ConditionalRequestConflict", Unavailable),
        (503, "SlowDown", Throttled),
        (500, "InternalError", Unavailable),
        (502, "", Unavailable),
        (200, "InternalError", Unavailable),
        (200, "InvalidPart", NotFound),
        (301, "PermanentRedirect", InvalidSpec),
    ],
)
async def test_error_responses_become_the_error_tree(server, served, opened, status, code, expected):
    server.answers = {kind: [lambda: error(status, code)] for kind in ("send", "complete")}
    parts = opened(await served(server.answer), retries=0)
    for call in (
        parts.send("a", "crc64nvme:id", 1, DATA),
        parts.complete("a", "crc64nvme:id", [RECEIPT]),
    ):
        with pytest.raises(expected) as caught:
            await call
        assert type(caught.value) is expected
        assert "key-of-tests" not in str(caught.value)
        assert "secret-of-tests" not in str(caught.value)


@pytest.mark.parametrize(
    "fails",
    [
        lambda: error(503, ""),
        lambda: error(200, "InternalError"),
        lambda: error(400, "BadDigest"),
        lambda: None,
    ],
)
async def test_temporary_errors_are_retried(server, parts, fails):
    for kind in ("send", "complete", "abort"):
        server.answers[kind].insert(0, fails)
    upload = await parts.begin("a", PART)
    await parts.complete("a", upload, [await parts.send("a", upload, 1, DATA)])
    await parts.abort("a", upload)
    assert [len(server.of(kind)) for kind in ("send", "complete", "abort")] == [2, 2, 2]


@pytest.mark.parametrize(
    ("found", "ours"),
    [
        (there(x_amz_checksum_crc64nvme="AAAAAAAAAAA=", ETag=multipart_etag([RECEIPT])), False),
        (there(ETag=multipart_etag([RECEIPT])), True),
        (there(ETag='"0-1"'), False),
        (there(11, ETag=multipart_etag([RECEIPT])), False),
        (lambda: error(404, "NoSuchKey"), False),
        (lambda: error(403, "AccessDenied"), False),
    ],
)
async def test_a_lost_response_to_a_completion_is_detected(server, parts, found, ours):
    server.answers["complete"] = [lambda: None, lambda: error(404, "NoSuchUpload")]
    server.answers["stat"] = [found]
    if ours:
        await parts.complete("a", "crc64nvme:id", [RECEIPT])
        return
    with pytest.raises(NotFound, match="Start it again"):
        await parts.complete("a", "crc64nvme:id", [RECEIPT])


@pytest.mark.parametrize(
    "found", [there(11), there(x_amz_checksum_crc64nvme="AAAAAAAAAAA="), lambda: error(404, "NoSuchKey")]
)
async def test_a_false_success_of_a_completion_is_detected(server, parts, found):
    server.answers["stat"] = [found]
    with pytest.raises(NotFound, match="Start it again"):
        await parts.complete("a", "crc64nvme:id", [RECEIPT])


async def test_credentials_that_may_only_write_complete(server, parts):
    server.answers["stat"] = [lambda: error(403, "AccessDenied")]
    await parts.complete("a", "crc64nvme:id", [RECEIPT])


async def test_the_object_checksum_decides_after_a_lost_response(server, parts):
    await parts.send("a", "crc64nvme:id", 1, DATA)
    checksum = server.of("send")[0][0].headers[CHECKSUM]
    server.answers["complete"] = [lambda: error(404, "NoSuchUpload")]
    server.answers["stat"] = [there(x_amz_checksum_crc64nvme=checksum, ETag='"of-an-encrypted-object-1"')]
    await parts.complete("a", "crc64nvme:id", [RECEIPT])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("NoSuchUpload", NotFound),
        ("NoSuchBucket", BucketNotFound),
        ("InvalidAccessKeyId", AccessDenied),
        ("AccessDenied", Unavailable),
    ],
)
async def test_an_error_hidden_by_a_closed_connection_is_requested(server, parts, code, expected):
    server.answers["send"] = [lambda: None]
    server.answers["list"] = [lambda: error(403, code)]
    with pytest.raises(expected) as caught:
        await parts.send("a", "crc64nvme:id", 1, DATA)
    assert type(caught.value) is expected


async def test_a_part_damaged_in_transit_is_never_kept(server, served, opened):
    """A proxy inverts a bit; the server behind it verifies the checksum, as S3 does."""

    async def comparing(request):
        if kind_of(request) == "send" and request.headers[CHECKSUM] != b64(crc64(await request.read())):
            return error(400, "BadDigest")
        return await server.answer(request)

    behind = await served(comparing)
    damaged = []

    async def proxy(request):
        body = bytearray(await request.read())
        if kind_of(request) == "send" and not damaged:
            damaged.append(True)
            body[3] ^= 1
        async with (
            ClientSession(auto_decompress=False) as session,
            session.request(
                request.method, behind + request.path_qs, headers=request.headers, data=bytes(body)
            ) as got,
        ):
            return web.Response(
                status=got.status, body=await got.read(), headers={"ETag": RECEIPT.tag, **KNOWS}
            )

    parts = opened(await served(proxy))
    upload = await parts.begin("a", PART)
    assert await parts.send("a", upload, 1, DATA) == RECEIPT
    assert damaged
    assert [body for _, body in server.of("send")] == [DATA]


def b64(checksum):
    return (
        completion_xml([UploadedPart(1, "", checksum, 1)], checksums=True)
        .decode()
        .split("NVME>")[1]
        .split("<")[0]
    )


async def test_a_stalled_server_times_out(served, opened):
    async def silent(request):
        await asyncio.sleep(30)

    parts = opened(await served(silent), stall_seconds=0.2, retries=0)
    for call in (parts.begin("a", PART), parts.send("a", "sha256:id", 1, b"x" * PART)):
        with pytest.raises(Unavailable, match="no response in time"):
            await call


async def test_a_server_that_reads_nothing_times_out(opened):
    """The connection accepts what fits into its buffers, and no more."""
    ended = asyncio.Event()

    async def deaf(reader, writer):
        reader._transport.pause_reading()
        await ended.wait()
        writer.close()

    async with await asyncio.start_server(deaf, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        parts = opened(f"http://127.0.0.1:{port}", stall_seconds=0.2, retries=0)
        async with asyncio.timeout(15):
            with pytest.raises(Unavailable, match="no response in time"):
                await parts.send("a", "crc64nvme:id", 1, memoryview(bytes(64 << 20)))
        ended.set()


async def test_a_cancelled_part_ends(server, served, opened):
    reached = asyncio.Event()

    async def silent(request):
        reached.set()
        await asyncio.sleep(30)

    parts = opened(await served(silent))
    task = asyncio.create_task(parts.send("a", "sha256:id", 1, b"x" * PART))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_session_token_is_sent_and_signed(server, served, opened):
    parts = opened(await served(server.answer), {**KEYS, "AWS_SESSION_TOKEN": "token-of-tests"})
    await parts.begin("a", PART)
    ((begin, _),) = server.of("begin")
    assert begin.headers["x-amz-security-token"] == "token-of-tests"
    assert "x-amz-security-token" in begin.headers["Authorization"]


async def test_credentials_of_the_environment_are_not_mixed_with_a_secrets(
    server, served, opened, monkeypatch
):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-somebody-else")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-somebody-else")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-somebody-else")
    monkeypatch.setenv("AWS_REGION", "mars-1")
    await opened(await served(server.answer)).begin("a", PART)
    ((begin, _),) = server.of("begin")
    assert "Credential=key-of-tests/" in begin.headers["Authorization"]
    assert "/us-east-1/s3/" in begin.headers["Authorization"]
    assert "x-amz-security-token" not in begin.headers


async def test_anonymous_requests_are_not_signed(server, served, opened):
    parts = opened(await served(server.answer), {"AWS_SKIP_SIGNATURE": "true"})
    upload = await parts.begin("a", PART)
    await parts.send("a", upload, 1, DATA)
    assert all("Authorization" not in request.headers for _, request, _ in server.seen)


async def test_virtual_hosts_if_configured(server, served, opened):
    endpoint = (await served(server.answer)).replace("127.0.0.1", "localhost")
    parts = opened(endpoint, {**KEYS, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}, retries=0)
    assert parts._client._url == endpoint.replace("http://", "http://bucket.")
    assert opened(endpoint)._client._url == f"{endpoint}/bucket"


def access(held):
    return s3_access(Uri("s3", "bucket"), StoreConfig(endpoint="http://127.0.0.1:1", credentials=held))


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """An environment without Amazon's variables."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


async def test_credentials_of_the_container_are_found(server, served, opened, bare):
    async def give(request):
        given = {
            "AccessKeyId": "key-of-the-role",
            "SecretAccessKey": "s",
            "Token": "t",
            "Expiration": "2099-01-01T00:00:00Z",
        }
        return web.json_response(given)

    address = f"{await served(give)}/creds"
    bare.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
    parts = opened(await served(server.answer), {"AWS_CONTAINER_CREDENTIALS_FULL_URI": address})
    await parts.begin("a", PART)
    ((begin, _),) = server.of("begin")
    assert "Credential=key-of-the-role/" in begin.headers["Authorization"]


async def test_credentials_that_their_service_refuses_are_missing(served, opened, bare):
    async def refuse(request):
        return web.Response(status=403)

    address = f"{await served(refuse)}/creds"
    bare.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
    bare.setenv("AWS_EC2_METADATA_DISABLED", "true")
    parts = opened("http://127.0.0.1:1", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": address})
    with pytest.raises(CredentialsMissing, match="AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        await parts.begin("a", PART)


@pytest.mark.parametrize(
    ("held", "environ", "same"),
    [
        (KEYS, {}, True),
        (KEYS, {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other"}, True),
        ({}, {}, True),
        ({}, {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other"}, False),
        ({"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}, {}, False),
        (WEB := {"AWS_WEB_IDENTITY_TOKEN_FILE": "/t", "AWS_ROLE_ARN": "r"}, WEB, True),
        (WEB, {}, False),
        (WEB, {**WEB, "AWS_ROLE_ARN": "another"}, False),
        ({**WEB, "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:1"}, WEB, False),
        ({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/a"}, WEB, False),
    ],
)
def test_there_is_no_provider_if_awscrt_would_find_other_credentials(bare, held, environ, same):
    for name, value in environ.items():
        bare.setenv(name, value)
    assert (credentials_provider(access(held)) is not None) is same


def test_an_object_of_several_parts_has_amazons_etag():
    md5 = [hashlib.md5(data, usedforsecurity=False) for data in (b"a", b"b")]
    receipts = [UploadedPart(i + 1, f'"{item.hexdigest()}"', 0, 1) for i, item in enumerate(md5)]
    joined = hashlib.md5(b"".join(item.digest() for item in md5), usedforsecurity=False).hexdigest()
    assert multipart_etag(receipts) == f'"{joined}-2"'
    assert multipart_etag([msgspec.structs.replace(receipts[0], tag='"opaque"'), receipts[1]]) == ""
    assert object_checksum([]).size == 0


def test_completions_escape_etags():
    body = completion_xml([UploadedPart(1, '"<&>"', 1, 2)], checksums=False)
    assert b"<ETag>&quot;&lt;&amp;&gt;&quot;</ETag><PartNumber>1</PartNumber></Part>" in body


async def test_new_keys_sign_the_next_request(server, served, opened):
    held = dict(KEYS)
    parts = opened(await served(server.answer), held, lambda: dict(held))
    await parts.begin("a", PART)
    held |= {"AWS_ACCESS_KEY_ID": "renewed", "AWS_SESSION_TOKEN": "token-of-tests"}
    await parts.begin("a", PART)
    held.clear()  # as while a Secret is recreated: then the first keys remain in use
    await parts.begin("a", PART)
    sent = [request.headers for request, _ in server.of("begin")]
    named = [headers["Authorization"].partition("Credential=")[2].partition("/")[0] for headers in sent]
    assert named == ["key-of-tests", "renewed", "key-of-tests"]
    assert [headers.get("x-amz-security-token") for headers in sent] == [None, "token-of-tests", None]

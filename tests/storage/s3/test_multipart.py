"""Multipart uploads against scripted servers, with the various responses of S3 services."""

import hashlib
import re

import msgspec
import pytest
from aiohttp import ClientSession, web

from podferry.contract.errors import (
    AccessDenied,
    BucketNotFound,
    Changed,
    InvalidSpec,
    NotFound,
    Throttled,
    Unavailable,
)
from podferry.storage.checksum.checksums import crc64, object_checksum
from podferry.storage.multipart import UploadedPart
from podferry.storage.s3.multipart import completion_xml, multipart_etag
from podferry.storage.s3.sigv4 import UNSIGNED_PAYLOAD
from tests.support.scripted_s3 import CHECKSUM, DATA, KNOWS, RECEIPT, STARTED, error, kind_of, there
from tests.support.store_calls import PART


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


async def test_an_upload_keeps_its_verification_over_a_restart(server, parts, answering, opened):
    again = opened(await answering(server.answer))
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
async def test_error_responses_become_the_error_tree(server, answering, opened, status, code, expected):
    server.answers = {kind: [lambda: error(status, code)] for kind in ("send", "complete")}
    parts = opened(await answering(server.answer), retries=0)
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


async def test_a_part_damaged_in_transit_is_never_kept(server, answering, opened):
    """A proxy inverts a bit; the server behind it verifies the checksum, as S3 does."""

    async def comparing(request):
        if kind_of(request) == "send" and request.headers[CHECKSUM] != b64(crc64(await request.read())):
            return error(400, "BadDigest")
        return await server.answer(request)

    behind = await answering(comparing)
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

    parts = opened(await answering(proxy))
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

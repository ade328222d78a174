"""Whether the imitation of OSS is right: Alibaba's own SDK decides.

Its client signs with versions 1 and 4, in headers and in URLs, uploads and downloads in parts, and reads
what the imitation sends. podferry uses no more of it than the addresses and signatures of requests.
"""

import datetime
import io
import os
import urllib.request

import alibabacloud_oss_v2 as sdk
import pytest

from podferry.storage.contract_suite.inputs import ODD_NAMES
from tests.support.oss.sdk_client import client_of

PART = 100 * 1024


@pytest.fixture(params=["v4", "v1"])
def client(request, shared_oss):
    return client_of(shared_oss, request.param)


def code(call):
    """Status and code of an error."""
    with pytest.raises(sdk.exceptions.OperationError) as caught:
        call()
    return caught.value.unwrap().status_code, caught.value.unwrap().code


@pytest.mark.parametrize("name", ["plain", *ODD_NAMES])
def test_objects_are_written_read_copied_and_deleted(client, fresh, name):
    key, copied = f"{fresh}/{name}", f"{fresh}/copy of {name}"
    client.put_object(sdk.PutObjectRequest("bucket", key, body=b"0123456789"))
    assert client.get_object(sdk.GetObjectRequest("bucket", key)).body.content == b"0123456789"
    ranged = sdk.GetObjectRequest("bucket", key, range_header="bytes=2-4")
    assert client.get_object(ranged).body.content == b"234"
    head = client.head_object(sdk.HeadObjectRequest("bucket", key))
    assert (head.content_length, head.object_type) == (10, "Normal")
    client.copy_object(sdk.CopyObjectRequest("bucket", copied, source_key=key))
    signed = client.presign(sdk.GetObjectRequest("bucket", copied), expires=datetime.timedelta(minutes=5))
    with urllib.request.urlopen(signed.url) as response:  # noqa: S310 - on loopback
        assert response.read() == b"0123456789"
    client.delete_object(sdk.DeleteObjectRequest("bucket", key))
    assert code(lambda: client.get_object(sdk.GetObjectRequest("bucket", key))) == (404, "NoSuchKey")
    client.delete_object(sdk.DeleteObjectRequest("bucket", copied))


def test_listings_have_pages_and_directories(client, fresh):
    keys = [f"{fresh}/{name}" for name in ("a+b", "c d/1", "c d/2", "e%", "f")]
    for key in keys:
        client.put_object(sdk.PutObjectRequest("bucket", key, body=b"1"))
    asked = sdk.ListObjectsV2Request("bucket", prefix=f"{fresh}/")
    pages = list(client.list_objects_v2_paginator(limit=2).iter_page(asked))
    assert [item.key for page in pages for item in page.contents] == keys
    assert len(pages) == 3
    first = client.list_objects(sdk.ListObjectsRequest("bucket", prefix=f"{fresh}/", delimiter="/"))
    assert [item.key for item in first.contents] == [keys[0], *keys[3:]]
    assert [item.prefix for item in first.common_prefixes] == [f"{fresh}/c d/"]
    asked = sdk.DeleteMultipleObjectsRequest("bucket", objects=[sdk.DeleteObject(key) for key in keys])
    assert [item.key for item in client.delete_multiple_objects(asked).deleted_objects] == keys


def test_uploads_and_downloads_in_parts_pass_the_checksums_of_the_sdk(client, fresh, tmp_path):
    data = os.urandom(3 * PART + 17)
    request = sdk.PutObjectRequest("bucket", f"{fresh}/big")
    client.uploader(part_size=PART, parallel_num=3).upload_from(request, io.BytesIO(data))
    target = tmp_path / "big"
    asked = sdk.GetObjectRequest("bucket", f"{fresh}/big")
    client.downloader(part_size=PART, parallel_num=3).download_file(asked, str(target))
    assert target.read_bytes() == data
    assert client.head_object(sdk.HeadObjectRequest("bucket", f"{fresh}/big")).object_type == "Multipart"


def test_parts_are_listed_and_aborted(client, fresh):
    key = f"{fresh}/parts"
    begun = client.initiate_multipart_upload(sdk.InitiateMultipartUploadRequest("bucket", key))
    for number in (1, 2):
        part = sdk.UploadPartRequest("bucket", key, number, begun.upload_id, body=bytes(PART))
        client.upload_part(part)
    listed = client.list_parts(sdk.ListPartsRequest("bucket", key, begun.upload_id, max_parts=1))
    assert ([part.part_number for part in listed.parts], listed.is_truncated) == ([1], True)
    assert listed.parts[0].hash_crc64
    client.abort_multipart_upload(sdk.AbortMultipartUploadRequest("bucket", key, begun.upload_id))
    gone = sdk.ListPartsRequest("bucket", key, begun.upload_id)
    assert code(lambda: client.list_parts(gone)) == (404, "NoSuchUpload")


def test_overwriting_can_be_forbidden_unless_the_bucket_keeps_versions(client, oss, fresh):
    client, request = client_of(oss), sdk.PutObjectRequest("bucket", "a", forbid_overwrite=True, body=b"1")
    assert client.put_object(request).version_id is None
    assert code(lambda: client.put_object(request)) == (409, "FileAlreadyExists")
    oss.buckets["bucket"].versioned = True
    assert client.put_object(request).version_id


@pytest.mark.parametrize("version", ["v1", "v4"])
@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"key": "other"}, (403, "InvalidAccessKeyId")),
        ({"secret": "other"}, (403, "SignatureDoesNotMatch")),
        ({"token": "other"}, (403, "InvalidSecurityToken")),
    ],
)
def test_wrong_credentials_are_refused(shared_oss, version, wrong, expected):
    client = client_of(shared_oss, version, **wrong)
    assert code(lambda: client.list_objects_v2(sdk.ListObjectsV2Request("bucket"))) == expected


def test_signatures_cover_region_time_and_content(oss):
    listing = sdk.ListObjectsV2Request("bucket")
    client = client_of(oss, region="cn-beijing")
    assert code(lambda: client.list_objects_v2(listing)) == (400, "InvalidArgument")
    oss.shift = 3600
    assert code(lambda: client_of(oss).list_objects_v2(listing)) == (403, "RequestTimeTooSkewed")
    oss.shift = 0
    damaged = sdk.PutObjectRequest("bucket", "a", content_md5="1B2M2Y8AsgTpgAmY7PhCfg==", body=b"1")
    assert code(lambda: client_of(oss).put_object(damaged)) == (400, "InvalidDigest")


def test_faults_are_told_as_oss_tells_them(oss):
    client = client_of(oss)
    client.put_object(sdk.PutObjectRequest("bucket", "a", body=b"1"))
    oss.buckets["bucket"].objects["a"].storage_class = "Archive"
    read = sdk.GetObjectRequest("bucket", "a")
    assert code(lambda: client.get_object(read)) == (403, "InvalidObjectState")
    oss.elsewhere["bucket"] = "oss-cn-beijing.aliyuncs.com"
    with pytest.raises(sdk.exceptions.OperationError) as caught:
        client.get_object(read)
    assert caught.value.unwrap().error_fileds["Endpoint"] == "oss-cn-beijing.aliyuncs.com"
    asked = sdk.HeadObjectRequest("none", "a")
    assert code(lambda: client.head_object(asked)) == (404, "NoSuchBucket")

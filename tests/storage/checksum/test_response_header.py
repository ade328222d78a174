import base64
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.manifest import Entry
from podferry.storage.checksum import crc64xz
from podferry.storage.checksum.checksums import Checksum, ChecksumKind, crc
from podferry.storage.checksum.response_header import response_checksum

DATA = b"123456789"
SIZE = len(DATA)
ENTRY = Entry("a", SIZE, "")
NVME, CRC32C = "rosUhgp5mIg=", "4waSgw=="
CRC64NVME = Checksum(ChecksumKind.CRC64NVME, base64.b64decode(NVME))
MD5 = Checksum(ChecksumKind.MD5, bytes.fromhex("25f9e794323b453885f5181f1b624d0b"))
MD5_64 = base64.b64encode(MD5.value).decode()
ETAG = f'ETag: "{MD5.value.hex()}"'
S3 = "x-amz-request-id: 4442587FB7D0A2F9"


def head(*fields, status="200 OK", length=SIZE):
    lines = [f"HTTP/1.1 {status}", "Server: AmazonS3", f"Content-Length: {length}", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


def partial(*fields, span="0-3", size=SIZE):
    return head(f"Content-Range: bytes {span}/{size}", *fields, status="206 Partial Content", length=4)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([f"x-amz-checksum-crc64nvme: {NVME}", "x-amz-checksum-type: FULL_OBJECT", ETAG, S3], CRC64NVME),
        ([f"X-Amz-Checksum-Crc64nvme:{NVME}  "], CRC64NVME),
        (
            [f"x-amz-checksum-crc32c: {CRC32C}", ETAG, S3],
            Checksum(ChecksumKind.CRC32C, bytes.fromhex("e3069283")),
        ),
        (["x-amz-checksum-crc32: y/Q5Jg=="], Checksum(ChecksumKind.CRC32, bytes.fromhex("cbf43926"))),
        (["x-amz-checksum-sha1: 98O8HYCOBHMq32eZZczDTKeuNEE="], ChecksumKind.SHA1),
        (["x-amz-checksum-sha256: FeKw08M4kev7cCz2n4ZnsKV2WvHFqE8kwJzrXw2Xlq8="], ChecksumKind.SHA256),
        ([f"x-goog-hash: crc32c={CRC32C}", f"x-goog-hash: md5={MD5_64}"], ChecksumKind.CRC32C),
        ([f"x-goog-hash: md5={MD5_64}, crc32c={CRC32C}"], ChecksumKind.CRC32C),
        ([f"x-goog-hash: md5={MD5_64}", "x-goog-stored-content-encoding: identity"], MD5),
        (["x-oss-hash-crc64ecma: 11051210869376104954", ETAG], ChecksumKind.CRC64XZ),
        ([f"Content-MD5: {MD5_64}"], MD5),
        ([f"x-ms-blob-content-md5: {MD5_64}"], MD5),
        ([ETAG, S3], MD5),
        ([ETAG, S3, "x-amz-server-side-encryption: AES256"], MD5),
        ([ETAG, "x-oss-object-type: Normal"], MD5),
    ],
)
def test_the_checksum_of_a_complete_response(fields, expected):
    found = response_checksum(head(*fields), ENTRY)
    assert (found if isinstance(expected, Checksum) else found.kind) == expected


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [ETAG],  # a plain web server's
        [f'ETag: W/"{MD5.value.hex()}"', S3],
        [f'ETag: "{MD5.value.hex()}-3"', S3],
        ['ETag: "0x8D4BCC2E4835CD0"', "x-ms-request-id: 1"],
        [ETAG, S3, "x-amz-server-side-encryption: aws:kms"],
        [ETAG, S3, "x-amz-server-side-encryption: aws:kms:dsse"],
        [ETAG, S3, "x-amz-server-side-encryption-customer-algorithm: AES256"],
        [ETAG, S3, "x-amz-storage-class: EXPRESS_ONEZONE"],
        [ETAG, "x-oss-object-type: Appendable"],
        [ETAG, "x-oss-object-type: Normal", "x-oss-server-side-encryption: KMS"],
        [f"x-amz-checksum-crc64nvme: {NVME}-2"],
        [f"x-amz-checksum-crc32c: {CRC32C}-2", "x-amz-checksum-type: COMPOSITE"],
        [f"x-amz-checksum-crc32c: {CRC32C}", "x-amz-checksum-type: COMPOSITE"],
        ["x-amz-checksum-crc32c: 4waSg"],
        ["x-amz-checksum-crc32c: 4waSgwAA"],
        [f"x-amz-meta-x-amz-checksum-crc32c: {CRC32C}"],
        [f"x-goog-hash: crc32c={CRC32C}", "x-goog-stored-content-encoding: gzip"],
        ["x-goog-hash: crc32c", "x-goog-hash: =,,"],
        ["x-oss-hash-crc64ecma: 18446744073709551616"],
        ["x-oss-hash-crc64ecma: -1"],
        ["x-oss-hash-crc64ecma: " + "9" * 5000],
        [f"X-Content-MD5: {MD5_64}"],
    ],
)
def test_unreliable_checksums_are_ignored(fields):
    assert response_checksum(head(*fields), ENTRY) is None


def test_gcs_hashes_of_compressed_objects_count_if_sent_compressed():
    fields = ["x-goog-stored-content-encoding: gzip", "Content-Encoding: gzip"]
    assert response_checksum(head(f"x-goog-hash: crc32c={CRC32C}", *fields), ENTRY) is not None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([f"x-goog-hash: crc32c={CRC32C}"], ChecksumKind.CRC32C),
        (["x-oss-hash-crc64ecma: 11051210869376104954"], ChecksumKind.CRC64XZ),
        ([f"Content-MD5: {MD5_64[::-1]}", f"x-ms-blob-content-md5: {MD5_64}"], ChecksumKind.MD5),
        ([f"x-amz-checksum-crc64nvme: {NVME}", ETAG, S3], ChecksumKind.MD5),
    ],
)
def test_a_range_response_with_the_objects_checksum(fields, expected):
    assert response_checksum(partial(*fields), ENTRY).kind is expected
    assert response_checksum(partial(*fields, size=SIZE + 1), ENTRY) is None, "of another object"
    assert response_checksum(partial(*fields, size="*"), ENTRY) is None


@pytest.mark.parametrize("span", ["0-3", f"0-{SIZE - 1}"])
def test_the_checksum_of_a_part_is_ignored(span):
    """A range response with all bytes has a checksum of checksums without its `-N` (boto/botocore#3346)."""
    for name, value in (
        ("x-amz-checksum-crc64nvme", NVME),
        ("x-amz-checksum-crc32c", CRC32C),
        ("Content-MD5", MD5_64),
    ):
        assert response_checksum(partial(f"{name}: {value}", span=span), ENTRY) is None


@pytest.mark.parametrize("status", ["404 Not Found", "304 Not Modified", "100 Continue", ""])
def test_other_responses_have_no_checksum(status):
    assert (
        response_checksum(head(f"x-amz-checksum-crc64nvme: {NVME}", ETAG, S3, status=status), ENTRY) is None
    )


def test_the_etag_is_used_without_the_library(monkeypatch):
    fields = ["x-oss-hash-crc64ecma: 11051210869376104954", ETAG, "x-oss-object-type: Normal"]
    crc64xz.crc64xz.cache_clear()
    monkeypatch.setitem(sys.modules, "_lzma", None)
    try:
        assert response_checksum(head(*fields), ENTRY) == MD5
    finally:
        crc64xz.crc64xz.cache_clear()


@given(st.binary(max_size=300), st.binary(max_size=40), st.integers(0, 9))
@settings(deadline=None)
def test_rubbish_raises_nothing(rubbish, value, where):
    response_checksum(rubbish, ENTRY)
    response_checksum(b"HTTP/1.1 200 OK\r\nx-amz-checksum-crc64nvme: " + value + b"\r\n" + rubbish, ENTRY)
    whole = head(f"x-goog-hash: crc32c={CRC32C}", ETAG, S3)
    response_checksum(whole[: len(whole) - where], ENTRY)


@given(st.binary(max_size=100))
@settings(deadline=None)
def test_a_checksum_matches_only_its_bytes(data):
    value = crc(ChecksumKind.CRC64NVME, data).to_bytes(8, "big")
    found = response_checksum(head(f"x-amz-checksum-crc64nvme: {base64.b64encode(value).decode()}"), ENTRY)
    assert found == Checksum(ChecksumKind.CRC64NVME, value)


def test_it_is_cheap_to_import():
    code = (
        "import sys, podferry.storage.checksum.response_header\n"
        "print(sorted({'awscrt', 'ctypes', 'lzma'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

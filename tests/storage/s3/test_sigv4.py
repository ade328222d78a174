"""Signatures equal those of Amazon's own library and of its published examples."""

import hashlib
from datetime import UTC, datetime
from urllib.parse import quote

import awscrt.auth
import awscrt.http
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.s3.sigv4 import (
    EMPTY_SHA256,
    UNSIGNED_PAYLOAD,
    S3Credentials,
    SigV4Signer,
    canonical_query,
)

NOW = 1_790_000_000
HOST = "127.0.0.1:9000"
TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)
SEGMENTS = ["a b", "+", "%", "%2B", "~", "", "ü", "日本", "&=", ".", "$file", "a:b@c,d;e"]
KEYS = st.one_of(TEXT, st.lists(st.sampled_from(SEGMENTS)).map("/".join))
TOKENS = st.none() | st.just("a/session+token==")
REGIONS = st.sampled_from(["us-east-1", "bj", "cn-north-1"])
SECONDS = st.integers(0, 4_000_000_000)
QUERY = st.dictionaries(
    st.sampled_from(["uploads", "uploadId", "partNumber", "max-parts", "a+b", "Z", "a", "ü", "x~"]),
    st.one_of(st.just(""), TEXT),
)
HEADER_NAMES = st.from_regex(
    r"x-amz-(meta-[a-z]{1,8}|checksum-crc64nvme|mp-object-size)|range|if-match", fullmatch=True
)
HEADERS = st.dictionaries(
    HEADER_NAMES, st.from_regex(r"[!-~]([ -~]{0,20}[!-~])?", fullmatch=True), max_size=5
)
PAYLOADS = st.one_of(
    st.just(UNSIGNED_PAYLOAD), st.binary(max_size=40).map(lambda data: hashlib.sha256(data).hexdigest())
)


def by_amazon(method, target, host, credentials, region, headers, payload, now):
    """The headers of the request after Amazon's library signed it."""
    request = awscrt.http.HttpRequest(
        method, target, awscrt.http.HttpHeaders([("Host", host), *headers.items()])
    )
    config = awscrt.auth.AwsSigningConfig(
        algorithm=awscrt.auth.AwsSigningAlgorithm.V4,
        signature_type=awscrt.auth.AwsSignatureType.HTTP_REQUEST_HEADERS,
        credentials_provider=awscrt.auth.AwsCredentialsProvider.new_static(*credentials),
        region=region,
        service="s3",
        date=datetime.fromtimestamp(now, UTC),
        use_double_uri_encode=False,
        should_normalize_uri_path=False,
        signed_body_value=payload,
        signed_body_header_type=awscrt.auth.AwsSignedBodyHeaderType.X_AMZ_CONTENT_SHA_256,
    )
    awscrt.auth.aws_sign_request(request, config).result()
    return {name.lower(): value for name, value in request.headers}


@given(
    method=st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE"]),
    key=KEYS,
    query=QUERY,
    headers=HEADERS,
    payload=PAYLOADS,
    token=TOKENS,
    region=REGIONS,
    now=SECONDS,
)
def test_signatures_equal_those_of_amazons_library(method, key, query, headers, payload, token, region, now):
    credentials = S3Credentials("key-of-tests", "secret/of+tests", token)
    path, query = "/bucket/" + quote(key, safe="/~"), canonical_query(query)
    signer = SigV4Signer(credentials, region, HOST, lambda: now)
    signed = signer.sign(method, path, query, headers, payload)
    target = f"{path}?{query}" if query else path
    expected = by_amazon(method, target, HOST, credentials, region, headers, payload, now)
    assert {name.lower(): value for name, value in signed.items()} == expected


@given(
    method=st.sampled_from(["GET", "HEAD"]),
    key=KEYS,
    checksum_mode=st.booleans(),
    token=TOKENS,
    region=REGIONS,
    now=SECONDS,
)
def test_header_lines_equal_the_headers_of_the_same_request(method, key, checksum_mode, token, region, now):
    signer = SigV4Signer(S3Credentials("key-of-tests", "secret/of+tests", token), region, HOST, lambda: now)
    path = "/bucket/" + quote(key, safe="/~")
    lines = signer.get_lines(method, path, checksum_mode)
    headers = signer.sign(method, path, headers={"x-amz-checksum-mode": "ENABLED"} if checksum_mode else {})
    assert lines == "".join(f"{name}: {value}\r\n" for name, value in headers.items() if name != "Host")


def test_each_day_has_its_own_signing_key():
    credentials, now = S3Credentials("key", "secret", None), [NOW // 86400 * 86400 - 1]
    signer = SigV4Signer(credentials, "bj", "host", lambda: now[0])
    for seconds in (0, 1, 86400):
        now[0] += seconds
        signed = {name.lower(): value for name, value in signer.sign("GET", "/a").items()}
        assert signed == by_amazon("GET", "/a", "host", credentials, "bj", {}, EMPTY_SHA256, now[0])


# "Examples: Signature Calculations", Authenticating Requests: Using the Authorization Header, Amazon S3 API
# reference. `Range` and `Date` are signed there.
PUBLISHED = [
    (
        ("GET", "/test.txt", "", {"Range": "bytes=0-9"}, EMPTY_SHA256),
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    ),
    (
        (
            "PUT",
            "/test%24file.text",
            "",
            {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
            hashlib.sha256(b"Welcome to Amazon S3.").hexdigest(),
        ),
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    ),
    (
        ("GET", "/", canonical_query({"lifecycle": ""}), {}, EMPTY_SHA256),
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    ),
    (
        ("GET", "/", canonical_query({"prefix": "J", "max-keys": "2"}), {}, EMPTY_SHA256),
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    ),
]


@pytest.mark.parametrize(("request_", "signature"), PUBLISHED)
def test_amazons_published_examples(request_, signature):
    credentials = S3Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None)
    may_24 = datetime(2013, 5, 24, tzinfo=UTC).timestamp()
    signer = SigV4Signer(credentials, "us-east-1", "examplebucket.s3.amazonaws.com", lambda: may_24)
    assert signer.sign(*request_)["Authorization"].endswith(f"Signature={signature}")

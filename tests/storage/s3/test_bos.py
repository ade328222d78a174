"""BOS: its own variables and host names, and nothing of Amazon's."""

import pytest
from aiohttp import web

from podferry.contract.errors import CredentialsMissing, InvalidSpec, NotFound
from podferry.contract.uri import parse_uri
from podferry.storage.credentials.sources import AwsSource
from podferry.storage.factory import open_store
from podferry.storage.s3.bos import bos_bucket
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.s3.sigv4 import S3Credentials
from podferry.storage.store import StoreConfig

KEYS = {"BOS_ACCESS_KEY_ID": "key-of-tests", "BOS_SECRET_ACCESS_KEY": "secret-of-tests"}
OF_AMAZON = {
    "AWS_ACCESS_KEY_ID": "amazons",
    "AWS_SECRET_ACCESS_KEY": "amazons",
    "AWS_SESSION_TOKEN": "amazons",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
    "AWS_REGION": "us-west-2",
    "AWS_SKIP_SIGNATURE": "true",
    "AWS_REQUEST_PAYER": "requester",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/none",
    "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
}
PLAIN, HOSTED = "bos://bucket/run", "bos://bucket.hkg.bcebos.com/run"


def access_of(uri=PLAIN, region=None, endpoint=None, reload_credentials=None, **variables):
    return s3_access(parse_uri(uri), StoreConfig(endpoint, region, variables, reload_credentials))


@pytest.mark.parametrize(
    ("uri", "variables", "expected"),
    [
        (PLAIN, {}, ("https://s3.bj.bcebos.com", "bj")),
        (PLAIN, {"BOS_REGION": "gz"}, ("https://s3.gz.bcebos.com", "gz")),
        (PLAIN, {"BOS_ENDPOINT": "su.bcebos.com"}, ("https://s3.su.bcebos.com", "su")),
        (PLAIN, {"BOS_ENDPOINT": "http://s3.su.bcebos.com/"}, ("http://s3.su.bcebos.com", "su")),
        (PLAIN, {"BOS_ENDPOINT": "http://10.0.0.1:80"}, ("http://10.0.0.1:80", "bj")),
        (HOSTED, {"BOS_REGION": "gz"}, ("https://s3.hkg.bcebos.com", "hkg")),
        (HOSTED, {"BOS_ENDPOINT": "https://bj.bcebos.com"}, ("https://s3.hkg.bcebos.com", "hkg")),
        (HOSTED, {"BOS_ENDPOINT": "http://10.0.0.1:80"}, ("http://10.0.0.1:80", "hkg")),
        ("bos://bucket.s3.fwh.bcebos.com/run", {}, ("https://s3.fwh.bcebos.com", "fwh")),
    ],
)
def test_host_and_region(uri, variables, expected):
    access = access_of(uri, **KEYS, **variables)
    assert (access.endpoint, access.region) == expected
    assert access.bucket_url == f"{expected[0]}/bucket"
    assert (access.source, access.uri.key) == (AwsSource.KEYS, "run")


def test_options_win_over_variables():
    assert access_of(region="gz", **KEYS, BOS_REGION="su").region == "gz"
    access = access_of(endpoint="http://127.0.0.1:7070", **KEYS, BOS_ENDPOINT="su.bcebos.com")
    assert (access.endpoint, access.region) == ("http://127.0.0.1:7070", "bj")


@pytest.mark.parametrize(
    "bucket", ["bj.bcebos.com", "bucket.example.com", "b.u.bj.bcebos.com", "bucket.bcebos.com"]
)
def test_a_host_that_is_none_of_a_bucket_is_refused(bucket):
    with pytest.raises(InvalidSpec, match=r"BUCKET\.REGION\.bcebos\.com/run"):
        access_of(f"bos://{bucket}/run", **KEYS)


@pytest.mark.parametrize("names", [("access-key", "secret-key"), ("ak", "sk")])
def test_secrets_of_paddle_operator_and_of_the_csi_plugin(names):
    key, secret = names
    held = {"name": "imagenet", "storage": "bos", "bucket": "bos://imagenet.bj.bcebos.com/imagenet"}
    access = access_of(**held, **{key: "its-key", secret: "its-secret"})
    assert access.credentials() == S3Credentials("its-key", "its-secret", None)
    assert access.location.credentials == tuple(sorted(names))
    assert bos_bucket(access.uri) == "bucket"


def test_credentials_are_read_again():
    renewed = {
        "BOS_ACCESS_KEY_ID": "new",
        "BOS_SECRET_ACCESS_KEY": "s",
        "BOS_SESSION_TOKEN": "t",
        **OF_AMAZON,
    }
    assert access_of(**KEYS).credentials() == S3Credentials("key-of-tests", "secret-of-tests", None)
    found = access_of(reload_credentials=lambda: renewed, **KEYS).credentials()
    assert found == S3Credentials("new", "s", "t")


def test_what_is_missing_is_named_as_bos_names_it():
    with pytest.raises(CredentialsMissing, match="BOS_SECRET_ACCESS_KEY is missing"):
        access_of(BOS_ACCESS_KEY_ID="key")
    with pytest.raises(CredentialsMissing) as caught:
        access_of(**OF_AMAZON)
    assert "Set BOS_ACCESS_KEY_ID" in str(caught.value)
    assert "AWS_" not in str(caught.value)


@pytest.mark.parametrize("anonymous", [False, True])
async def test_nothing_of_amazons_reaches_bos(answering, quick, monkeypatch, anonymous):
    seen = []

    async def look(request):
        seen.append(request)
        return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>")

    for name, value in OF_AMAZON.items():
        monkeypatch.setenv(name, value)
    own = {"BOS_SKIP_SIGNATURE": "true"} if anonymous else KEYS
    config = StoreConfig(await answering(look), credentials={**OF_AMAZON, **own})
    store = open_store(parse_uri(HOSTED), config, quick)
    with pytest.raises(NotFound):
        await store.stat("a")
    with pytest.raises(NotFound):
        await store.children()
    await store.close()
    assert len(seen) >= 2
    for request in seen:
        assert request.path.startswith("/bucket")
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert "amazons" not in str(headers)
        assert not {"x-amz-security-token", "x-amz-request-payer"} & set(headers)
        assert ("authorization" in headers) is not anonymous
        assert anonymous or "/hkg/s3/" in headers["authorization"]

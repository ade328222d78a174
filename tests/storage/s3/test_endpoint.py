"""How to reach an S3 store: obstore's client and our own are both configured from it."""

import pytest

from podferry.contract.errors import CredentialsMissing, NotFound
from podferry.contract.uri import Uri
from podferry.storage.s3.endpoint import s3_access, s3_endpoint
from podferry.storage.s3.sigv4 import S3Credentials
from podferry.storage.store import StoreConfig

KEYS = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
RENEWED = {"AWS_ACCESS_KEY_ID": "renewed", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
BUCKET = Uri("s3", "bucket", "run")


def access_of(reload_credentials=None, **variables):
    config = StoreConfig("https://s3.example.com", None, {**KEYS, **variables}, reload_credentials)
    return s3_access(BUCKET, config)


@pytest.mark.parametrize(
    ("scheme", "config", "expected"),
    [
        ("s3", StoreConfig(), ("https://s3.us-east-1.amazonaws.com", "us-east-1")),
        ("s3a", StoreConfig(region="eu-west-1"), ("https://s3.eu-west-1.amazonaws.com", "eu-west-1")),
        (
            "s3",
            StoreConfig("http://minio:9000/", credentials={"AWS_ENDPOINT_URL": "http://other"}),
            ("http://minio:9000", "us-east-1"),
        ),
        (
            "s3",
            StoreConfig(
                credentials={"AWS_ENDPOINT_URL": "http://any", "AWS_ENDPOINT_URL_S3": "http://of-s3"}
            ),
            ("http://of-s3", "us-east-1"),
        ),
    ],
)
def test_the_endpoint_is_the_configured_one_or_the_vendors(scheme, config, expected):
    assert s3_endpoint(Uri(scheme, "bucket"), config) == expected


def test_the_bucket_is_in_the_path_or_in_the_host_name():
    assert access_of().bucket_url == "https://s3.example.com/bucket"
    virtual_hosted = access_of(AWS_VIRTUAL_HOSTED_STYLE_REQUEST="true")
    assert virtual_hosted.bucket_url == "https://bucket.s3.example.com"


def test_missing_credentials_are_reported_before_any_request():
    config = StoreConfig(credentials={"AWS_EC2_METADATA_DISABLED": "true"})
    with pytest.raises(CredentialsMissing, match="read: AWS_EC2_METADATA_DISABLED"):
        s3_access(BUCKET, config)


def test_new_keys_are_used_and_the_first_ones_if_there_are_none():
    first = S3Credentials("key-of-tests", "secret-of-tests", None)
    assert access_of().credentials() == first
    assert access_of(lambda: RENEWED).credentials() == S3Credentials("renewed", "s", "t")
    assert access_of(dict).credentials() == first

    def fail():
        raise NotFound.of("the Secret is being recreated")

    assert access_of(fail).credentials() == first


@pytest.mark.parametrize("value", ["requester", "Requester", "true"])
def test_the_reader_pays_if_configured(value):
    assert access_of(AWS_REQUEST_PAYER=value).request_headers == {"x-amz-request-payer": "requester"}
    assert access_of(AWS_REQUEST_PAYER="").request_headers == {}

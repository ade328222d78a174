import pytest

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.oss.endpoint import oss_access
from podferry.storage.store import StoreConfig

KEYS = {"OSS_ACCESS_KEY_ID": "k", "OSS_ACCESS_KEY_SECRET": "secret"}


def access(uri="oss://data/x", endpoint=None, region=None, **held):
    return oss_access(parse_uri(uri), StoreConfig(endpoint=endpoint, region=region, credentials=KEYS | held))


@pytest.mark.parametrize(
    ("held", "endpoint", "region"),
    [
        ({"OSS_REGION": "cn-hangzhou"}, "https://oss-cn-hangzhou.aliyuncs.com", "cn-hangzhou"),
        ({"OSS_REGION": "oss-cn-beijing"}, "https://oss-cn-beijing.aliyuncs.com", "cn-beijing"),
        (
            {"OSS_ENDPOINT": "oss-cn-hangzhou-internal.aliyuncs.com"},
            "https://oss-cn-hangzhou-internal.aliyuncs.com",
            "cn-hangzhou",
        ),
        (
            {"OSS_ENDPOINT": "http://vpc100-oss-cn-beijing.aliyuncs.com/"},
            "http://vpc100-oss-cn-beijing.aliyuncs.com",
            "cn-beijing",
        ),
        ({"URL": "oss-us-west-1.aliyuncs.com"}, "https://oss-us-west-1.aliyuncs.com", "us-west-1"),
        (
            {"OSS_ENDPOINT": "https://data.oss-cn-hangzhou.aliyuncs.com"},
            "https://oss-cn-hangzhou.aliyuncs.com",
            "cn-hangzhou",
        ),
        (
            {"OSS_ENDPOINT": "https://cn-hangzhou.oss.aliyuncs.com"},
            "https://cn-hangzhou.oss.aliyuncs.com",
            "cn-hangzhou",
        ),
        (
            {"OSS_ENDPOINT": "https://oss-accelerate.aliyuncs.com", "OSS_REGION": "cn-hangzhou"},
            "https://oss-accelerate.aliyuncs.com",
            "cn-hangzhou",
        ),
    ],
)
def test_endpoint_and_region_follow_from_each_other(held, endpoint, region):
    found = access(**held)
    assert (found.endpoint, found.region) == (endpoint, region)


def test_the_form_of_hadoop_has_the_endpoint_in_the_uri():
    found = access("oss://data.oss-cn-hangzhou-internal.aliyuncs.com/x")
    assert (found.bucket, found.endpoint) == ("data", "https://oss-cn-hangzhou-internal.aliyuncs.com")
    assert found.internal
    assert found.bucket_url == "https://data.oss-cn-hangzhou-internal.aliyuncs.com"
    configured = access("oss://data.oss-cn-hangzhou.aliyuncs.com/x", OSS_ENDPOINT="http://127.0.0.1:9000")
    assert configured.endpoint == "http://127.0.0.1:9000"


def test_options_come_before_variables():
    found = access(endpoint="http://[::1]:80", region="cn-a", OSS_ENDPOINT="https://x", OSS_REGION="cn-b")
    assert (found.endpoint, found.region) == ("http://[::1]:80", "cn-a")
    assert found.bucket_url == "http://[::1]:80/data"
    assert not found.internal


@pytest.mark.parametrize(
    ("uri", "held", "said"),
    [
        ("oss://data/x", {}, "endpoint of .* is unknown"),
        ("oss://data/x", {"OSS_ENDPOINT": "https://oss.example.com"}, "region of .* is unknown"),
        ("oss://data/x", {"OSS_ENDPOINT": "https://oss-accelerate.aliyuncs.com"}, "region of .* is unknown"),
        ("oss://data/x", {"OSS_REGION": "cn-x.evil.com/"}, "region of OSS is not valid"),
        ("oss://data/x", {"OSS_ENDPOINT": "ftp://x"}, "must be a URL"),
        ("oss://data.evil.com/x", {"OSS_REGION": "cn-hangzhou"}, r"must end with \.aliyuncs\.com"),
    ],
)
def test_what_cannot_be_reached_is_refused(uri, held, said):
    with pytest.raises(InvalidSpec, match=said):
        access(uri, **held)


def test_without_keys_the_message_says_what_to_set():
    config = StoreConfig(credentials={"OSS_REGION": "cn-hangzhou"})
    with pytest.raises(CredentialsMissing, match=r"read: OSS_REGION.*OSS_ACCESS_KEY_ID.*RRSA"):
        oss_access(parse_uri("oss://data/x"), config)


def test_keys_are_never_printed():
    assert "secret" not in repr(access(OSS_REGION="cn-hangzhou"))


def test_keys_of_a_secret_are_read_again():
    held, config = dict(KEYS), StoreConfig(region="cn-hangzhou", credentials=KEYS)
    config = StoreConfig(region="cn-hangzhou", credentials=KEYS, reload_credentials=lambda: held)
    found = oss_access(parse_uri("oss://data/x"), config)
    held["OSS_ACCESS_KEY_ID"] = "new"
    assert found.keys().access_key_id == "new"
    held.clear()
    assert found.keys().access_key_id == "k"

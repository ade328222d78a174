"""RAM roles of service accounts: an imitation of STS gives keys that an imitation of OSS accepts."""

import time

import pytest

from podferry.contract.errors import Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.network.proxies import read_proxies
from podferry.storage.network.settings import Network
from podferry.storage.oss import assume_role
from podferry.storage.oss.assume_role import AssumedRole, service_url
from podferry.storage.oss.endpoint import oss_access
from podferry.storage.store import StoreConfig

ROLE = "acs:ram::1:role/reader"
URI = parse_uri("oss://bucket/x")


@pytest.fixture
def config(oss, tmp_path):
    oss.roles[ROLE] = "token of the pod"
    (tmp_path / "token").write_text("token of the pod\n")
    held = {
        "ALIBABA_CLOUD_ROLE_ARN": ROLE,
        "ALIBABA_CLOUD_OIDC_PROVIDER_ARN": "acs:ram::1:oidc-provider/ack",
        "ALIBABA_CLOUD_OIDC_TOKEN_FILE": str(tmp_path / "token"),
        "ALIBABA_CLOUD_STS_ENDPOINT": oss.endpoint,
    }
    return StoreConfig(endpoint=oss.endpoint, region="cn-hangzhou", credentials=held)


def with_variables(config, **more):
    held = {**config.credentials, **more}
    return StoreConfig(endpoint=config.endpoint, region=config.region, credentials=held)


async def test_a_pod_reads_and_writes_with_its_role(oss, config, quick):
    store = open_store(URI, config, quick)
    await store.write("a", b"1")
    assert bytes(await store.read("a")) == b"1"
    await store.request_builder.prepare([])
    assert b"Credential=STS." in store.request_builder.build(await store.stat("a"), 0, 1)
    assert "STS.1" in oss.accounts
    await store.close()


def test_keys_are_asked_for_shortly_before_they_expire(oss, config, monkeypatch):
    role = AssumedRole(oss_access(URI, config))
    first = role.keys()
    assert role.keys() is first
    late = time.time() + assume_role.VALID_SECONDS - assume_role.EARLY_SECONDS + 1
    monkeypatch.setattr(assume_role.time, "time", lambda: late)
    assert role.keys().access_key_id != first.access_key_id


def test_valid_keys_outlive_an_outage(oss, config, monkeypatch):
    role = AssumedRole(oss_access(URI, config))
    first = role.keys()
    oss.roles.clear()
    now = time.time()
    monkeypatch.setattr(assume_role.time, "time", lambda: now + assume_role.VALID_SECONDS - 10)
    assert role.keys() is first
    monkeypatch.setattr(assume_role.time, "time", lambda: now + assume_role.VALID_SECONDS + 10)
    with pytest.raises(Unavailable):
        role.keys()


def test_what_the_service_refuses_is_named_without_the_token(oss, config):
    oss.roles.clear()
    with pytest.raises(Unavailable, match=r"gives no credentials .*HTTP 400 AuthenticationFail") as caught:
        AssumedRole(oss_access(URI, config)).keys()
    assert "token of the pod" not in str(caught.value)
    assert "ALIBABA_CLOUD_ROLE_ARN" in str(caught.value)


def test_a_token_file_that_is_missing_is_named(config, tmp_path):
    (tmp_path / "token").unlink()
    with pytest.raises(Unavailable, match="token file: FileNotFoundError"):
        AssumedRole(oss_access(URI, config)).keys()


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "127.0.0.1:1"])
def test_a_service_that_does_not_respond_is_retried_later(config, address):
    config = with_variables(config, ALIBABA_CLOUD_STS_ENDPOINT=address)
    with pytest.raises(Unavailable, match=r"does not respond.*127\.0\.0\.1:1"):
        AssumedRole(oss_access(URI, config)).keys()


def test_a_proxy_is_used(config):
    network = Network(proxies=read_proxies({"HTTP_PROXY": "http://127.0.0.1:1"}))
    held = {**config.credentials, "ALIBABA_CLOUD_STS_ENDPOINT": "http://sts.test"}
    config = StoreConfig(endpoint=config.endpoint, region="cn-x", credentials=held, network=network)
    with pytest.raises(Unavailable, match=r"sts\.test.*refused"):
        AssumedRole(oss_access(URI, config)).keys()


@pytest.mark.parametrize(
    ("endpoint", "held", "host"),
    [
        ("https://oss-cn-hangzhou.aliyuncs.com", {}, "https://sts.cn-hangzhou.aliyuncs.com/?"),
        ("https://oss-cn-hangzhou-internal.aliyuncs.com", {}, "https://sts-vpc.cn-hangzhou.aliyuncs.com/?"),
        (
            "https://oss-cn-hangzhou.aliyuncs.com",
            {"ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED": "true", "ALIBABA_CLOUD_STS_REGION": "cn-beijing"},
            "https://sts-vpc.cn-beijing.aliyuncs.com/?",
        ),
    ],
)
def test_the_service_of_the_region_is_asked(config, endpoint, held, host):
    variables = {**config.credentials, "ALIBABA_CLOUD_STS_ENDPOINT": "", **held}
    access = oss_access(URI, StoreConfig(endpoint=endpoint, credentials=variables))
    assert service_url(access).startswith(host)
    assert "Action=AssumeRoleWithOIDC&Version=2015-04-01" in service_url(access)

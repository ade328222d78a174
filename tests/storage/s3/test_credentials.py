from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from aiohttp import web
from awscrt.exceptions import AwsCrtError

from podferry.contract.errors import CredentialsMissing, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.network.settings import read_network
from podferry.storage.s3.credentials import credentials_provider
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.s3.sigv4 import S3Credentials
from podferry.storage.store import StoreConfig
from tests.support.store_calls import KEYS, PART

WEB = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/t", "AWS_ROLE_ARN": "r"}


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


GIVEN = {
    "AccessKeyId": "key-of-the-role",
    "SecretAccessKey": "s",
    "Token": "t",
    "Expiration": "2099-01-01T00:00:00Z",
}


@pytest.mark.parametrize("refusals", [0, 1])
async def test_credentials_of_the_container_are_found(server, answering, opened, bare, refusals):
    """Also where the role was granted only a moment ago, or its service fails for a moment."""
    answers = [web.Response(status=403) for _ in range(refusals)]

    async def give(request):
        return answers.pop() if answers else web.json_response(GIVEN)

    bare.setenv("AWS_EC2_METADATA_DISABLED", "true")
    address = f"{await answering(give)}/creds"
    bare.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
    parts = opened(await answering(server.answer), {"AWS_CONTAINER_CREDENTIALS_FULL_URI": address})
    await parts.begin("a", PART)
    ((begin, _),) = server.of("begin")
    assert "Credential=key-of-the-role/" in begin.headers["Authorization"]


async def test_a_service_that_refuses_credentials_is_asked_again_later(answering, opened, bare):
    async def refuse(request):
        return web.Response(status=403)

    address = f"{await answering(refuse)}/creds"
    bare.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
    bare.setenv("AWS_EC2_METADATA_DISABLED", "true")
    parts = opened("http://127.0.0.1:1", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": address})
    expected = r"gives no credentials for s3://bucket/run .*read: AWS_CONTAINER_CREDENTIALS_FULL_URI"
    with pytest.raises(Unavailable, match=expected):
        await parts.begin("a", PART)


class Chain:
    """awscrt's credentials of the machine: given as often as said, then refused."""

    def __init__(self, times):
        self.times = times

    def get_credentials(self):
        found = Future()
        if self.times:
            found.set_result(SimpleNamespace(access_key_id="k", secret_access_key="s", session_token="t"))
        else:
            found.set_exception(AwsCrtError(0, "AWS_AUTH_CREDENTIALS_PROVIDER_IMDS_SOURCE_FAILURE", ""))
        self.times -= 1
        return found


def test_a_machine_has_a_role_once_it_has_given_credentials(bare):
    provider = credentials_provider(access({}))
    provider._ambient = Chain(0)
    with pytest.raises(CredentialsMissing, match="there are no credentials for s3://bucket"):
        provider.load()
    provider._ambient = Chain(1)
    assert provider.load() == S3Credentials("k", "s", "t")
    with pytest.raises(Unavailable, match="gives no credentials for s3://bucket"):
        provider.load()


@pytest.mark.parametrize(
    ("held", "environ", "same"),
    [
        (KEYS, {}, True),
        (KEYS, {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other"}, True),
        ({}, {}, True),
        ({}, {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other"}, False),
        ({"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}, {}, False),
        ({"AWS_PROFILE": "of-a-secret"}, {}, False),
        ({}, {"AWS_PROFILE": "of-the-process"}, False),
        (WEB, WEB, True),
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


@pytest.mark.parametrize("variables", [{}, {"HTTPS_PROXY": "http://proxy:1"}])
def test_awscrt_reaches_the_token_service_only_without_a_proxy(bare, variables):
    for name, value in WEB.items():
        bare.setenv(name, value)
    config = StoreConfig("http://127.0.0.1:1", credentials=WEB, network=read_network(variables))
    found = credentials_provider(s3_access(Uri("s3", "bucket"), config))
    assert (found is None) is bool(variables)

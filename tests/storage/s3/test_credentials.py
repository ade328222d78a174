import pytest
from aiohttp import web

from podferry.contract.errors import CredentialsMissing
from podferry.contract.uri import Uri
from podferry.storage.network.settings import read_network
from podferry.storage.s3.credentials import credentials_provider
from podferry.storage.s3.endpoint import s3_access
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


async def test_credentials_of_the_container_are_found(server, answering, opened, bare):
    async def give(request):
        given = {
            "AccessKeyId": "key-of-the-role",
            "SecretAccessKey": "s",
            "Token": "t",
            "Expiration": "2099-01-01T00:00:00Z",
        }
        return web.json_response(given)

    address = f"{await answering(give)}/creds"
    bare.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
    parts = opened(await answering(server.answer), {"AWS_CONTAINER_CREDENTIALS_FULL_URI": address})
    await parts.begin("a", PART)
    ((begin, _),) = server.of("begin")
    assert "Credential=key-of-the-role/" in begin.headers["Authorization"]


async def test_credentials_that_their_service_refuses_are_missing(answering, opened, bare):
    async def refuse(request):
        return web.Response(status=403)

    address = f"{await answering(refuse)}/creds"
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

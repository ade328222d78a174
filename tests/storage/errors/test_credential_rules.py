import pytest
from aiohttp import web

from podferry.contract.errors import PermanentError, TemporaryError, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.errors.credential_rules import CREDENTIAL_ERRORS
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.store_calls import listed


async def test_without_any_credentials_the_variables_are_named(monkeypatch, quick):
    config = StoreConfig(credentials={"AWS_EC2_METADATA_DISABLED": "true"})
    with pytest.raises(PermanentError) as caught:
        open_store(parse_uri("s3://bucket/x"), config, quick)
    text = str(caught.value)
    assert "there are no credentials for s3://bucket/x" in text
    for word in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SKIP_SIGNATURE=true"):
        assert word in text
    assert "AZURE" not in text
    with pytest.raises(PermanentError) as caught:
        open_store(
            parse_uri("az://box/x"), StoreConfig(credentials={"AZURE_STORAGE_ACCOUNT_NAME": "a"}), quick
        )
    assert "AZURE_SKIP_SIGNATURE=true" in str(caught.value)
    assert "AWS" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, ["gives no credentials for s3://bucket/x", "HTTP 404", "AWS_SKIP_SIGNATURE=true"]),
        (403, ["gives no credentials for s3://bucket/x", "HTTP 403"]),
        (500, ["the service that gives credentials for s3://bucket/x does not respond", "HTTP 500"]),
    ],
)
async def test_a_metadata_service_without_a_role_is_not_a_missing_bucket(answering, quick, status, words):
    """On machines of other clouds, and in pods whose role is not there yet."""

    async def refuse(request):
        return web.Response(status=status)

    service = await answering(refuse)
    config = StoreConfig("http://127.0.0.2:1", credentials={"AWS_METADATA_ENDPOINT": service})
    store = open_store(parse_uri("s3://bucket/x"), config, quick)
    with pytest.raises(Unavailable) as caught:
        await listed(store)
    assert [word for word in [*words, service] if word not in str(caught.value)] == []


def test_credentials_that_something_else_renews_are_waited_for():
    temporary = {kind for kind, rule in CREDENTIAL_ERRORS.items() if issubclass(rule.error, TemporaryError)}
    assert temporary == {"expired", "no role"}

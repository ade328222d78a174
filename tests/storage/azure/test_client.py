"""Requests to Azure by our own client, with each kind of credentials."""

import pytest
from aiohttp import web

from podferry.contract.errors import BucketNotFound
from podferry.contract.uri import Uri
from podferry.storage.azure.client import AzureClient
from podferry.storage.azure.endpoint import azure_access
from podferry.storage.http.store_client import StoreRequest
from podferry.storage.store import StoreConfig

ACCOUNT = {"AZURE_STORAGE_ACCOUNT_NAME": "acc"}


@pytest.fixture
async def sent(answering, quick):
    """Sends a request with some credentials; what the server has received."""
    seen = []

    async def answer(request):
        seen.append(request)
        return web.Response(status=201)

    endpoint = await answering(answer)

    async def sent(**held):
        config = StoreConfig(f"{endpoint}/acc", credentials={**ACCOUNT, **held})
        client = AzureClient(azure_access(Uri("az", "box", "run"), config), quick)
        await client.send(
            StoreRequest("PUT", "a b", {"comp": "block", "blockid": "a+b="}, {"X": "y"}, b"body")
        )
        await client.close()
        return seen[-1]

    return sent


async def test_a_key_signs(sent):
    request = await sent(AZURE_STORAGE_ACCOUNT_KEY="a2V5")
    assert request.raw_path == "/acc/box/run/a%20b?comp=block&blockid=a%2Bb%3D"
    assert request.headers["Authorization"].startswith("SharedKey acc:")
    assert (request.headers["Content-Length"], request.headers["X"]) == ("4", "y")
    assert request.headers["x-ms-version"]


async def test_a_shared_access_signature_follows_the_query(sent):
    request = await sent(AZURE_STORAGE_SAS_TOKEN="?sv=1&sig=a%2Bb%3D")
    assert request.raw_path.endswith("?comp=block&blockid=a%2Bb%3D&sv=1&sig=a%2Bb%3D")
    assert "Authorization" not in request.headers


async def test_a_token_is_sent_and_anonymous_requests_have_none(sent):
    assert (await sent(AZURE_STORAGE_TOKEN="t")).headers["Authorization"] == "Bearer t"
    assert "Authorization" not in (await sent(AZURE_SKIP_SIGNATURE="true")).headers


async def test_errors_are_those_of_the_store(answering, quick):
    async def answer(request):
        return web.Response(status=404, headers={"x-ms-error-code": "ContainerNotFound"})

    held = {**ACCOUNT, "AZURE_SKIP_SIGNATURE": "true"}
    config = StoreConfig(await answering(answer), credentials=held)
    client = AzureClient(azure_access(Uri("az", "box", "run"), config), quick)
    with pytest.raises(BucketNotFound):
        await client.send(StoreRequest("GET", "a"))
    await client.close()

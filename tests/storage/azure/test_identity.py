"""Identities, with an imitation of the services that give tokens."""

import base64
import json

import pytest
from aiohttp import web

from podferry.contract.errors import CredentialsMissing, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.store_calls import PART

ACCOUNT = {"AZURE_STORAGE_ACCOUNT_NAME": "acc"}


class Imitation:
    """Gives tokens to an identity that it knows, and serves a blob to whoever has one."""

    def __init__(self):
        self.asked, self.seen = [], []
        self.refusal = None
        self.expires_in: object = 3600

    async def answer(self, request):
        if "oauth2" in request.path:
            form = dict(await request.post()) if request.method == "POST" else dict(request.query)
            self.asked.append((request.path, form, request.headers.get("Metadata")))
            if self.refusal is not None:
                return web.json_response({"error": self.refusal}, status=401)
            return web.json_response({"access_token": "token-of-tests", "expires_in": self.expires_in})
        self.seen.append(request)
        if request.headers.get("Authorization") != "Bearer token-of-tests":
            return web.Response(status=403, headers={"x-ms-error-code": "AuthenticationFailed"})
        await request.read()
        headers = {"ETag": '"0x1"', "Last-Modified": "Sat, 21 Nov 2026 17:00:00 GMT"}
        return web.Response(
            status=201 if request.method == "PUT" else 200, body=b"0123456789", headers=headers
        )


@pytest.fixture
async def served(answering):
    imitation = Imitation()
    return imitation, await answering(imitation.answer)


def identities(endpoint, folder):
    token = folder / "token"
    token.write_text("assertion-of-pod\n")
    common = {
        "AZURE_CLIENT_ID": "client",
        "AZURE_TENANT_ID": "tenant",
        "AZURE_AUTHORITY_HOST": f"{endpoint}/",
    }
    return {
        "secret": {**common, "AZURE_CLIENT_SECRET": "secret-of-tests"},
        "pod": {**common, "AZURE_FEDERATED_TOKEN_FILE": str(token)},
        "machine": {"AZURE_CLIENT_ID": "client", "AZURE_MSI_ENDPOINT": f"{endpoint}/oauth2/token"},
    }


@pytest.mark.parametrize("kind", ["secret", "pod", "machine"])
async def test_every_road_uses_the_identitys_token(served, quick, tmp_path, kind):
    imitation, endpoint = served
    held = {**ACCOUNT, **identities(endpoint, tmp_path)[kind]}
    store = open_store(Uri("az", "box", "run"), StoreConfig(f"{endpoint}/acc", credentials=held), quick)
    assert bytes(await store.read("a")) == b"0123456789"
    builder = store.request_builder
    await builder.prepare([])
    assert b"Authorization: Bearer token-of-tests\r\n" in builder.build(Entry("a", 10), 0, 10)
    upload = await store.multipart.begin("b", PART)
    await store.multipart.send("b", upload, 1, b"x")
    await store.close()
    path, form, metadata = imitation.asked[0]
    assert form["client_id"] == "client"
    if kind == "machine":
        assert (metadata, form["resource"]) == ("true", "https://storage.azure.com/")
    else:
        assert path == "/tenant/oauth2/v2.0/token"
        assert form["scope"] == "https://storage.azure.com/.default"
        assert form.get("client_assertion", "assertion-of-pod") == "assertion-of-pod"
        assert ("client_assertion" in form) is (kind == "pod")
    assert {request.headers["Authorization"] for request in imitation.seen} == {"Bearer token-of-tests"}


async def test_a_refused_identity_is_named_and_not_printed(served, quick, tmp_path):
    imitation, endpoint = served
    imitation.refusal = "invalid_client"
    held = {**ACCOUNT, **identities(endpoint, tmp_path)["secret"]}
    store = open_store(Uri("az", "box", "run"), StoreConfig(f"{endpoint}/acc", credentials=held), quick)
    with pytest.raises(Unavailable, match=r"gives no credentials.*HTTP 401 invalid_client") as caught:
        await store.read("a")
    assert "secret-of-tests" not in str(caught.value)
    assert not imitation.seen
    await store.close()


async def test_an_absent_metadata_service_says_what_is_missing(quick):
    held = {**ACCOUNT, "AZURE_MSI_ENDPOINT": "http://127.0.0.1:1/x"}
    store = open_store(Uri("az", "box", "run"), StoreConfig("http://127.0.0.1:1", credentials=held), quick)
    with pytest.raises(CredentialsMissing, match="AZURE_STORAGE_ACCOUNT_KEY"):
        await store.read("a")


async def test_nothing_of_the_environment_is_added(served, quick, monkeypatch):
    imitation, endpoint = served
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"of somebody else").decode())
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sig=of-somebody-else")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "other")
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    held = {**ACCOUNT, "AZURE_STORAGE_TOKEN": "token-of-tests"}
    store = open_store(Uri("az", "box", "run"), StoreConfig(f"{endpoint}/acc", credentials=held), quick)
    assert bytes(await store.read("a")) == b"0123456789"
    assert json.dumps(dict(imitation.seen[0].headers)).count("of-somebody-else") == 0
    assert imitation.seen[0].path == "/acc/box/run/a"
    assert not imitation.seen[0].query_string
    await store.close()

"""Credentials reach the server of the URI on both roads, and no other one that it redirects to."""

from __future__ import annotations

import base64

import pytest
from aiohttp import web
from yarl import URL

from podferry.contract.errors import AccessDenied, CredentialsMissing, InvalidSpec
from podferry.contract.manifest import encode_manifest
from podferry.contract.uri import parse_uri
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.factory import open_store
from podferry.storage.http.origin_headers import is_same_server
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.memory.store import CONTENTS, Content
from podferry.storage.store import StoreConfig
from tests.support.staged import staged

BASIC = "Basic " + base64.b64encode(b"user:password").decode()
KEYS = {"HTTP_USERNAME": "user", "HTTP_PASSWORD": "password", "HTTP_HEADERS": "X-Key: secret"}
INDEX = '<title>Index of /set/</title><a href="../">..</a><a href="a">a</a><a href="b">b</a>'


class Elsewhere:
    """A server that has the files, and must not see credentials."""

    def __init__(self) -> None:
        self.fields: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.fields += [name for name in request.headers if name.lower() in {"authorization", "x-key"}]
        return web.Response(body=b"elsewhere", content_type="application/octet-stream")


class Guarded:
    """A server that requires credentials; `/set/b` is at another one."""

    def __init__(self, other: str, accepted: tuple[str, str] = ("Authorization", BASIC)) -> None:
        self.other, self.accepted = other, accepted
        self.key = ""

    async def handle(self, request: web.Request) -> web.Response:
        name, value = self.accepted
        if request.headers.get(name) != value:
            return web.Response(status=401, headers={"WWW-Authenticate": "Basic"})
        self.key = request.headers.get("X-Key", "")
        if request.path in {"/set", "/set/"}:
            return web.Response(text=INDEX, content_type="text/html")
        if request.path == "/set/a":
            return web.Response(body=b"here", content_type="application/octet-stream")
        raise web.HTTPFound(f"{self.other}{request.path}")


@pytest.fixture
async def elsewhere(answering):
    server = Elsewhere()
    server.url = await answering(server.handle)
    return server


async def test_credentials_stay_at_the_server(answering, elsewhere, tmp_path) -> None:
    server = Guarded(elsewhere.url)
    uri = f"{await answering(server.handle)}/set"
    counters = TransferCounters()
    found = await staged(uri, StoreConfig(credentials=KEYS), tmp_path, counters)
    assert counters.jobs == 1, "the file that is not redirected is fetched by the pool"
    assert found == {"a": b"here", "b": b"elsewhere"}
    assert server.key == "secret"
    assert elsewhere.fields == []


@pytest.mark.parametrize(
    "keys",
    [
        {"username": "user", "password": "password"},
        {"netrc": "machine 127.0.0.1 login user password password"},
        {"HTTP_HEADERS": f"Authorization: {BASIC}"},
    ],
)
async def test_ways_to_give_credentials(answering, elsewhere, keys: dict[str, str]) -> None:
    uri = parse_uri(f"{await answering(Guarded(elsewhere.url).handle)}/set")
    store = open_store(uri, StoreConfig(credentials=keys))
    assert sorted([entry.name async for entry in store.entries()]) == ["a", "b"]
    assert bytes(await store.read("a", 1, 2)) == b"er"
    await store.close()


async def test_a_token_of_a_secret_may_change(answering, elsewhere, monkeypatch) -> None:
    monkeypatch.setattr("podferry.storage.credentials.refresh.REFRESH_SECONDS", 0)
    server = Guarded(elsewhere.url, ("Authorization", "Bearer first"))
    held = {"HTTP_BEARER_TOKEN": "first"}
    config = StoreConfig(credentials=dict(held), reload_credentials=lambda: held)
    store = open_store(parse_uri(f"{await answering(server.handle)}/set"), config)
    assert (await store.stat("a")).size == 4
    server.accepted, held["HTTP_BEARER_TOKEN"] = ("Authorization", "Bearer second"), "second"
    assert (await store.stat("a")).size == 4
    await store.close()


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({}, CredentialsMissing, "there are no credentials for .*Set HTTP_USERNAME and HTTP_PASSWORD"),
        ({"netrc": "machine other login u password p"}, CredentialsMissing, "no credentials were read"),
        (
            {"username": "user", "password": "wrong"},
            AccessDenied,
            "rejects the credentials.*HTTP 401.*read: u",
        ),
    ],
)
async def test_wrong_credentials_are_named(answering, elsewhere, keys, error, message) -> None:
    uri = f"{await answering(Guarded(elsewhere.url).handle)}/set"
    with pytest.raises(error, match=message) as caught:
        await open_dataset(parse_uri(uri), StoreConfig(credentials=keys))
    assert "wrong" not in str(caught.value)


async def test_a_manifest_does_not_choose_who_receives_credentials(answering, elsewhere, tmp_path) -> None:
    """One from a store may come from a stranger; local ones are the user's own, and netrc names its hosts."""
    uri = f"{await answering(Guarded(elsewhere.url).handle)}/set"
    dataset = await open_dataset(parse_uri(uri), StoreConfig(credentials=KEYS))
    await dataset.store.close()
    document = encode_manifest(dataset.manifest)
    (tmp_path / "m.podferry.json").write_bytes(document)
    CONTENTS["manifests"] = Content()
    CONTENTS["manifests"].objects["m.podferry.json"] = document
    netrc = {"netrc": "default login user password password"}
    local, stored = f"{tmp_path}/m.podferry.json", "memory://manifests/m.podferry.json"
    assert await first_file(stored, netrc) == await first_file(local, KEYS) == b"here"
    with pytest.raises(CredentialsMissing):
        await first_file(stored, KEYS)


async def first_file(manifest: str, keys: dict[str, str]) -> bytes:
    named = await open_dataset(parse_uri(manifest), StoreConfig(credentials=keys))
    try:
        return bytes(await named.store.read("a"))
    finally:
        await named.store.close()


async def test_a_redirection_to_a_metadata_service_is_not_followed(answering) -> None:
    async def redirects(request: web.Request) -> web.Response:
        raise web.HTTPFound("http://169.254.169.254/latest/meta-data/iam")

    store = open_store(parse_uri(await answering(redirects)))
    for call in (store.stat("a"), store.read("a"), store.children()):
        with pytest.raises(InvalidSpec, match="metadata service"):
            await call
    await store.close()


async def test_a_redirection_to_where_the_policy_allows_no_sources_is_not_followed(
    answering, elsewhere
) -> None:
    uri = parse_uri(f"{await answering(Guarded(elsewhere.url).handle)}/set")
    for globs, allowed in (((f"{uri.root}*",), False), ((f"{uri.root}*", f"{elsewhere.url}/set/"), True)):
        store = open_store(uri, StoreConfig(credentials=KEYS, allowed_sources=(globs,)))
        assert bytes(await store.read("a")) == b"here"
        if allowed:
            assert bytes(await store.read("b")) == b"elsewhere"
        else:
            for call in (store.read("b"), store.stat("b")):
                with pytest.raises(InvalidSpec, match=f"redirects: the policy .*{elsewhere.url}/set/b"):
                    await call
        await store.close()


@pytest.mark.parametrize(
    ("server", "other", "same"),
    [
        ("http://h", "http://h:80/x", True),
        ("http://h", "https://h/x", True),
        ("https://h", "http://h/x", False),
        ("http://h:8080", "https://h", False),
        ("http://h:8080", "http://h:8081", False),
        ("http://h", "http://h.evil", False),
        ("http://[::1]:80", "http://[::1]/", True),
    ],
)
def test_which_server_is_the_same(server: str, other: str, same: bool) -> None:
    assert is_same_server(URL(server), URL(other)) is same

"""Repositories of an imitation of the Hub.

Hugging Face's own client reads it in tests/servers/test_huggingface.py.
"""

from __future__ import annotations

import pytest
from aiohttp import web

from podferry.contract.errors import (
    AccessDenied,
    BucketNotFound,
    Changed,
    Corrupt,
    EmptyDataset,
    InvalidSpec,
    NotFound,
    TemporaryError,
    Throttled,
)
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import StoreConfig
from tests.support.hub_server import HubServer, Repo
from tests.support.staged import staged

OLD = {"README.md": b"old", "data/train.bin": b"0" * 3000}
FILES = {
    "README.md": b"# digits",
    "data/train.bin": b"1" * 3000,
    "data/a b#c?d%20é.txt": b"odd",
    "data/empty": b"",
    "data/Case": b"upper",
    "data/case": b"lower",
}
COMMITS = {"1" * 40: OLD, "2" * 40: FILES}
REVISIONS = {"main": "2" * 40, "v1": "1" * 40, "a/b": "1" * 40, "refs/convert/parquet": "1" * 40}


@pytest.fixture
async def hub(answering):
    open_ = Repo(dict(REVISIONS), dict(COMMITS))
    closed = Repo(dict(REVISIONS), dict(COMMITS), frozenset({"good"}), frozenset({"known"}))
    private = Repo(dict(REVISIONS), dict(COMMITS), frozenset({"good"}))
    server = HubServer(
        {
            "datasets/org/digits": open_,
            "datasets/org/gated": closed,
            "spaces/org/private": private,
            "models/org/net": open_,
        }
    )
    server.storage = await answering(server.stored)
    server.url = await answering(server.handle)
    return server


def config(hub: HubServer, **held: str) -> StoreConfig:
    return StoreConfig(credentials={"HF_ENDPOINT": hub.url, **held})


async def test_a_web_server_in_the_place_of_the_hub_is_named(answering) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=404, text="<html>404</html>", content_type="text/html")

    store = open_store(parse_uri("hf://datasets/org/digits"), StoreConfig(await answering(answer)))
    with pytest.raises(InvalidSpec, match=r"not respond as the Hugging Face Hub.*HTTP 404, text/html"):
        await store.children()
    await store.close()


@pytest.mark.parametrize(
    ("uri", "files"),
    [
        ("hf://datasets/org/digits", FILES),
        ("hf://datasets/org/digits@v1", OLD),
        ("hf://datasets/org/digits@a%2Fb", OLD),
        ("hf://datasets/org/digits@refs/convert/parquet", OLD),
        ("hf://org/net", FILES),
        ("hf://models/org/net", FILES),
        ("hf://datasets/org/digits@" + "1" * 40, OLD),
        ("hf://datasets/org/digits/data", {name[5:]: data for name, data in FILES.items() if "/" in name}),
        ("hf://datasets/org/digits/data/train.bin", {"train.bin": FILES["data/train.bin"]}),
    ],
)
@pytest.mark.parametrize("page", [1000, 2])
async def test_files_are_staged(
    hub: HubServer, uri: str, files: dict[str, bytes], page: int, tmp_path
) -> None:
    hub.page = page
    assert await staged(uri, config(hub), tmp_path) == files
    assert hub.leaked == []


@pytest.mark.parametrize("key", ["HF_TOKEN", "token"])
async def test_a_token_stays_at_the_hub(hub: HubServer, key: str, tmp_path) -> None:
    assert await staged("hf://datasets/org/gated", config(hub, **{key: "good"}), tmp_path) == FILES
    assert hub.leaked == []


@pytest.mark.parametrize(
    ("uri", "token", "error", "message"),
    [
        (
            "datasets/org/gated",
            "known",
            AccessDenied,
            r"org/gated is gated .*Accept its conditions at http.*org/gated",
        ),
        (
            "datasets/org/gated",
            "",
            AccessDenied,
            r"is gated \(HTTP 401 GatedRepo; .*no credentials were read",
        ),
        ("datasets/org/gated", "wrong", AccessDenied, r"rejects the credentials .*read: HF_TOKEN"),
        ("spaces/org/private", "", BucketNotFound, r"or it is private \(HTTP 401 RepoNotFound.*set HF_TOKEN"),
        ("datasets/org/none", "", BucketNotFound, "there is no repository datasets/org/none"),
        ("datasets/org/digits@v2", "", NotFound, "has no revision v2"),
        ("datasets/org/digits/none", "", EmptyDataset, "is empty"),
        ("datasets/org", "", InvalidSpec, "names no repository"),
        ("datasets/o rg/x", "", InvalidSpec, "not the name of a repository"),
        ("datasets/org/x@", "", InvalidSpec, "not the name of a repository"),
    ],
)
async def test_what_cannot_be_read_is_named(hub: HubServer, uri, token, error, message) -> None:
    with pytest.raises(error, match=message) as caught:
        await open_dataset(parse_uri(f"hf://{uri}"), config(hub, **({"HF_TOKEN": token} if token else {})))
    assert "known" not in str(caught.value)


async def test_a_listing_and_its_files_are_of_one_commit(hub: HubServer) -> None:
    dataset = await open_dataset(parse_uri("hf://datasets/org/digits@v1"), config(hub))
    hub.repositories["datasets/org/digits"].revisions["v1"] = "2" * 40
    entry = next(entry for entry in dataset.manifest.entries if entry.name == "README.md")
    assert bytes(await dataset.store.read("README.md", tag=entry.tag, size=entry.size)) == b"old"
    assert await dataset.store.children() == ["README.md", "data/"]
    await dataset.store.close()
    later = open_store(parse_uri("hf://datasets/org/digits@v1"), config(hub))
    with pytest.raises(Changed):
        await later.read("README.md", tag=entry.tag, size=entry.size)
    await later.close()


async def test_ranges(hub: HubServer) -> None:
    store = open_store(parse_uri("hf://datasets/org/digits"), config(hub))
    for name in ("data/train.bin", "README.md"):
        data, entry = FILES[name], await store.stat(name)
        assert bytes(await store.read(name, 2, 3, entry.tag, entry.size)) == data[2:5]
        assert bytes(await store.read(name, 2)) == data[2:]
        assert bytes(await store.read(name, 2, 0)) == b""
        with pytest.raises(Corrupt):
            await store.read(name, len(data) - 1, 2, entry.tag, entry.size)
    await store.close()


@pytest.mark.parametrize("name", ["README.md", "data/train.bin"])
async def test_other_bytes_do_not_match_the_checksum(hub: HubServer, name: str) -> None:
    store = open_store(parse_uri("hf://datasets/org/digits"), config(hub))
    entry = await store.stat(name)

    def damaged(request, data, headers):
        return web.Response(body=b"X" + data[1:], headers=headers)

    hub._ranged = damaged  # type: ignore[method-assign]
    with pytest.raises(Corrupt, match="do not match their checksum"):
        await store.read(name, tag=entry.tag, size=entry.size)
    await store.close()


async def test_it_cannot_be_written(hub: HubServer) -> None:
    store = open_store(parse_uri("hf://datasets/org/digits"), config(hub))
    for call in (store.write("a", b"1"), store.delete(["a"])):
        with pytest.raises(InvalidSpec, match="read only"):
            await call
    await store.close()


@pytest.mark.parametrize(
    ("status", "error"), [(429, Throttled), (503, TemporaryError), (500, TemporaryError)]
)
async def test_an_outage_is_temporary(answering, status: int, error: type) -> None:
    async def fails(request: web.Request) -> web.Response:
        return web.Response(status=status)

    endpoint = await answering(fails)
    with pytest.raises(error):
        await open_dataset(
            parse_uri("hf://datasets/org/x"), StoreConfig(credentials={"HF_ENDPOINT": endpoint})
        )

"""What a broken or hostile server may send in the place of the Hub."""

from __future__ import annotations

import json

import pytest
from aiohttp import web

from podferry.contract.errors import Corrupt, FerryError, InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.huggingface import hub
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import StoreConfig

SHA = json.dumps({"sha": "1" * 40})


def member(path: str, kind: str = "file") -> str:
    return json.dumps([{"type": kind, "path": path, "oid": "0" * 40, "size": 1}])


@pytest.fixture
async def listed(answering):
    async def lists(text: str, link: str = "", commit: str = SHA) -> None:
        async def handle(request: web.Request) -> web.Response:
            body = commit if "/revision/" in request.path else text
            headers = {"Link": f'<{link.format(request.url.origin())}>; rel="next"'} if link else {}
            return web.Response(text=body, content_type="application/json", headers=headers)

        endpoint = await answering(handle)
        uri = parse_uri("hf://datasets/org/name/d")
        await (await open_dataset(uri, StoreConfig(credentials={"HF_ENDPOINT": endpoint}))).store.close()

    return lists


@pytest.mark.parametrize(
    ("text", "link", "error", "message"),
    [
        ("<html>", "", InvalidSpec, "does not respond as the Hugging Face Hub"),
        ('{"error": "x"}', "", InvalidSpec, "does not respond as the Hugging Face Hub"),
        (member("other/x"), "", Corrupt, "no file below"),
        (member("d/x", "submodule"), "", Corrupt, "'submodule' 'd/x'"),
        (member("d/../x"), "", FerryError, r"\.\."),
        (member("d/x\n"), "", FerryError, "name"),
        (
            member("d/x"),
            "http://elsewhere.example/next",
            InvalidSpec,
            "the next page is at elsewhere.example",
        ),
        (member("d/x"), "{}/api/datasets/org/name/tree/same", Corrupt, "has no end"),
        (" " * 3000 + "[]", "", InvalidSpec, "a response of over"),
    ],
)
async def test_it_is_named(listed, monkeypatch, text: str, link: str, error: type, message: str) -> None:
    monkeypatch.setattr(hub, "MAX_PAGE_BYTES", 2000)
    with pytest.raises(error, match=message):
        await listed(text, link)


async def test_a_login_in_the_place_of_the_commit(listed) -> None:
    with pytest.raises(InvalidSpec, match="does not respond as the Hugging Face Hub"):
        await listed("[]", commit="<html>")

"""nginx's listing in JSON."""

from __future__ import annotations

import json

import pytest

from podferry.contract.errors import FerryError, InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import StoreConfig
from podferry.storage.web.json_index import read_json_index
from tests.support.web_server import Answer, ScriptedServer, file, moved

MTIME = "Mon, 23 Nov 2026 10:00:00 GMT"


def index(**kinds: str) -> Answer:
    members = [{"name": name, "type": kind, "mtime": MTIME} for name, kind in kinds.items()]
    return Answer(json.dumps(members, indent=1) if members else "[\r\n\r\n]", "application/json")


async def listed(answering, answers: dict[str, Answer]) -> dict[str, int]:
    server = ScriptedServer({"/set": moved("/set/", 301)} | answers)
    dataset = await open_dataset(parse_uri(f"{await answering(server.handle)}/set"), StoreConfig())
    await dataset.store.close()
    return {entry.name: entry.size for entry in dataset.manifest.entries}


async def test_files_and_directories(answering) -> None:
    answers = {
        "/set/": index(**{"a b#?%.bin": "file", "sub": "directory", "none": "directory"}),
        "/set/a b#?%.bin": file(),
        "/set/sub/": index(b="file"),
        "/set/sub/b": file(7),
        "/set/none/": index(),
    }
    assert await listed(answering, answers) == {"a b#?%.bin": 5, "sub/b": 7}


@pytest.mark.parametrize("text", ['{"name": "a"}', '[{"name": "a"}]', "[1]", "[]", "[", '"a"'])
async def test_other_json_is_no_listing(answering, text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - msgspec's own
        read_json_index(text)
    with pytest.raises(InvalidSpec, match=r"no HTML index page .*not as nginx lists files"):
        await listed(answering, {"/set/": Answer(text, "application/json")})


@pytest.mark.parametrize("name", ["..", "../x", "a/../../x", "/etc/passwd", "\ufffd", ""])
async def test_names_that_are_none_are_refused(answering, name: str) -> None:
    with pytest.raises(FerryError):
        await listed(answering, {"/set/": index(**{name: "file"}), "*": file()})


async def test_a_dataset_may_be_a_file_in_json(answering) -> None:
    assert await listed(answering, {"/set": index(a="file")}) == {"set": len(index(a="file").text)}

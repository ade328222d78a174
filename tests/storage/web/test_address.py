"""The root of a server as a dataset: the path of `http://host` is empty, and the same as `/`."""

from __future__ import annotations

import json

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import StoreConfig
from podferry.storage.web.address import address_path, is_directory_address
from podferry.storage.web.index import directory_shown, read_index
from tests.support.web_server import Answer, ScriptedServer, file, moved

FILES = {"/a": file(), "/sub": moved("/sub/", 301), "/sub/": Answer('<a href="b">'), "/sub/b": file(7)}
JSON = json.dumps([{"name": "a", "type": "file"}, {"name": "sub", "type": "directory"}])
XML = '<?xml version="1.0"?><list><file>a</file></list>'


@pytest.fixture(params=["", "/"], ids=["without a slash", "with one"])
async def listed(request, answering):
    """Lists the root of a server that has this page there."""

    async def lists(page: str, kind: str = "text/html") -> dict[str, int]:
        server = ScriptedServer(FILES | {"/": Answer(page, kind)})
        endpoint = await answering(server.handle)
        text = page.replace("ENDPOINT", endpoint)
        server.answers["/"] = Answer(text, kind)
        dataset = await open_dataset(parse_uri(f"{endpoint}{request.param}"), StoreConfig())
        await dataset.store.close()
        return {entry.name: entry.size for entry in dataset.manifest.entries}

    return lists


LINKS = {
    "relative": '<a href="a"></a><a href="sub/"></a>',
    "from the root": '<a href="/a"></a><a href="/sub/"></a>',
    "absolute": '<a href="ENDPOINT/a"></a><a href="ENDPOINT/sub/"></a><a href="ENDPOINT"></a>',
    "dots": '<a href="./a"></a><a href="./sub/"></a><a href="?C=N;O=D"></a>',
}


@pytest.mark.parametrize("page", LINKS.values(), ids=LINKS)
async def test_it_is_complete(listed, page: str) -> None:
    assert await listed(page) == {"a": 5, "sub/b": 7}


async def test_an_index_in_json(listed) -> None:
    assert await listed(JSON, "application/json") == {"a": 5, "sub/b": 7}


@pytest.mark.parametrize("kind", ["text/xml", "application/json"])
async def test_another_page_is_no_index(listed, kind: str) -> None:
    with pytest.raises(InvalidSpec, match="no HTML index page"):
        await listed(XML, kind)


@pytest.mark.parametrize("link", ["?page=2", "./?page=2", "/?page=2", "ENDPOINT?page=2", "ENDPOINT/?page=2"])
async def test_another_part_of_the_index_is_named(listed, link: str) -> None:
    with pytest.raises(InvalidSpec, match=r"several pages.*page=2"):
        await listed(f'<a href="a"></a><a href="{link}">Next</a>')


@pytest.mark.parametrize(
    ("url", "path", "is_directory"),
    [
        ("http://host", "/", True),
        ("http://host?page=2", "/", True),
        ("http://host/a%20b/?C=N", "/a%20b/", True),
        ("http://host/a?b=/", "/a", False),
    ],
)
def test_paths(url: str, path: str, is_directory: bool) -> None:
    assert (address_path(url), is_directory_address(url)) == (path, is_directory)


@pytest.mark.parametrize("address", ["http://host", "http://host/"])
def test_an_empty_path_is_the_root(address: str) -> None:
    assert directory_shown("http://host/", address) == "/"
    found = read_index(address, "/", '<a href="a"></a><a href="?page=2"></a><a href="/b"></a>')
    assert found.names == {"a", "b"}
    assert found.next_page == "?page=2"

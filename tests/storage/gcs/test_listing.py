"""Listings of the JSON API: complete, or an error."""

import subprocess
import sys

import pytest
from aiohttp import web

from podferry.contract.errors import BucketNotFound, Corrupt, FerryError, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.gcs.client import GcsClient
from podferry.storage.gcs.listing import KIND, PAGE, list_objects
from podferry.storage.network.settings import DIRECT


def item(name, size=1):
    return {"name": name, "size": str(size), "etag": f"tag of {name}"}


def page(*items, **more):
    return 200, {"kind": KIND, "items": list(items), **more}


@pytest.fixture
async def lists(answering, quick):
    """Lists a store whose server has these responses; what it found, and the queries that were sent."""
    responses, queries = [], []

    async def answer(request):
        queries.append(dict(request.query))
        status, body = responses.pop(0) if len(responses) > 1 else responses[0]
        return web.Response(text=body) if isinstance(body, str) else web.json_response(body, status=status)

    url = await answering(answer)
    client = GcsClient(url, StoreLocation(Uri("gs", "bucket", "run"), url), DIRECT, quick, dict)

    async def lists(*given, prefix=""):
        responses[:] = given
        return [entry async for entry in list_objects(client, prefix)], queries

    yield lists
    await client.close()


async def test_all_pages_are_listed_with_names_below_the_prefix(lists):
    pages = page(item("run/a/1", 5), nextPageToken="x"), page(item("run/a/b/2", 7))
    found, queries = await lists(*pages, prefix="a")
    assert found == [Entry("a/1", 5, "tag of run/a/1"), Entry("a/b/2", 7, "tag of run/a/b/2")]
    asked = PAGE | {"prefix": "run/a/"}
    assert queries == [asked, asked | {"pageToken": "x"}]


async def test_markers_of_directories_and_temporary_objects_are_left_out(lists):
    temporary = "run/.podferry-0123456789abcdef.tmp"
    found, _ = await lists(page(item("run/", 0), item("run/d/", 0), item(temporary), item("run/full/", 3)))
    assert [entry.name for entry in found] == ["full/"]


async def test_an_empty_page_is_the_end_only_without_a_token(lists):
    pages = (200, {"kind": KIND, "nextPageToken": "x"}), page(item("run/a"))
    assert [entry.name for entry in (await lists(*pages))[0]] == ["a"]
    assert (await lists((200, {"kind": KIND})))[0] == []


@pytest.mark.parametrize(
    ("pages", "error", "said"),
    [
        ([page(item("run/a"), nextPageToken="x")], Corrupt, "has no end"),
        ([page(item("other/a"))], Corrupt, "not below"),
        ([page(prefixes=["run/d/"])], Corrupt, "directories"),
        ([page(item("run/a"), nextPageToken="x"), (404, {})], Unavailable, "breaks off"),
        ([(404, {})], BucketNotFound, "gs://bucket"),
        ([(200, "<html>log in</html>")], FerryError, "listing"),
        ([(200, {})], FerryError, "listing"),
        ([page({"name": "run/a"})], FerryError, "listing"),
    ],
)
async def test_what_is_no_complete_listing_is_an_error(lists, pages, error, said):
    with pytest.raises(error, match=said):
        await lists(*pages)


def test_a_listing_without_credentials_loads_neither_fsspec_nor_google():
    program = (
        "import asyncio, sys; from podferry.contract.uri import Uri\n"
        "from podferry.storage.factory import open_store; from podferry.storage.store import StoreConfig\n"
        "config = StoreConfig('http://127.0.0.1:1', credentials={'GOOGLE_SKIP_SIGNATURE': 'true'})\n"
        "store = open_store(Uri('gs', 'b', ''), config)\n"
        "assert store.request_builder and store.multipart; asyncio.run(store.close())\n"
        "print({'aiohttp', 'fsspec', 'gcsfs', 'google', 'requests'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"

"""What a server says about a file; pages and ranges are in `test_directory.py` and `test_file.py`."""

from __future__ import annotations

import pytest
from aiohttp import ClientResponseError, web

from podferry.contract.uri import parse_uri
from podferry.storage.credentials.web import refreshed_headers
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.network.settings import DIRECT
from podferry.storage.store import StoreConfig
from podferry.storage.web.site import WebSite
from tests.support.web_server import Answer, ScriptedServer, file, moved


@pytest.fixture
async def info(answering, quick):
    """What a server with these answers says about `/a`."""
    opened = []

    async def asks(answers):
        endpoint = await answering(ScriptedServer(answers).handle)
        location = StoreLocation(parse_uri(f"{endpoint}/a"), endpoint)
        headers = refreshed_headers("HTTP_", endpoint, StoreConfig())
        opened.append(WebSite(location, DIRECT, quick, headers))
        return await opened[-1].general.info(f"{endpoint}/a")

    yield asks
    for site in opened:
        await site.close()


async def tagged(request: web.Request) -> web.Response:
    return web.Response(body=b"12345", headers={"ETag": '"t"'})


async def test_size_tag_and_type(info) -> None:
    found = await info({"/a": tagged})
    assert (found.size, found.tag) == (5, '"t"')


async def dated(request: web.Request) -> web.Response:
    return web.Response(body=b"12345", headers={"Last-Modified": "Sat, 28 Nov 2020 10:00:00 GMT"})


async def test_a_date_is_the_tag_where_there_is_no_etag(info) -> None:
    assert (await info({"/a": dated})).tag == "Sat, 28 Nov 2020 10:00:00 GMT"


@pytest.mark.parametrize("head", [Answer(status=405), Answer("", "application/octet-stream")])
async def test_a_server_may_not_answer_head(info, head: Answer) -> None:
    assert (await info({"HEAD /a": head, "/a": file(7)})).size == 7


async def test_the_address_is_that_behind_redirections(info) -> None:
    assert (await info({"/a": moved("/cdn/0f3b?signed"), "/cdn/0f3b": file()})).address.endswith("?signed")


async def test_an_empty_file_may_have_no_length(info) -> None:
    assert (await info({"/a": Answer(b"", "application/octet-stream", missing=-1)})).size == 0


async def test_the_size_of_encoded_bytes_is_unknown(info) -> None:
    async def encoded(request: web.Request) -> web.Response:
        response = web.Response(body=b"12345")
        response.enable_compression(web.ContentCoding.gzip)
        return response

    assert (await info({"/a": encoded})).size is None


async def test_an_error_of_both_requests_is_one(info) -> None:
    with pytest.raises(ClientResponseError):
        await info({})

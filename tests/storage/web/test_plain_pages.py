"""Pages without the general client: plain ones and redirections within the server; the rest is left to it."""

from __future__ import annotations

import pytest
from aiohttp import web

from podferry.contract.errors import Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.credentials.web import refreshed_headers
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.network.settings import DIRECT
from podferry.storage.store import StoreConfig
from podferry.storage.web.plain_pages import PlainPages, WebStatusError
from tests.support.web_server import Answer, ScriptedServer, moved

PAGE = Answer('<a href="b">b</a>', link='</x>; rel="prev", </set/?part=2>; title=t; rel="next"')


@pytest.fixture
async def get(answering, quick):
    """Gets `/set` from a server with this answer, beside a page at `/set/`."""
    opened = []

    async def gets(answer):
        server = ScriptedServer({"/set/": PAGE, "/set": answer})
        endpoint = await answering(server.handle)
        config = StoreConfig(credentials={"HTTP_BEARER_TOKEN": "secret"})
        location = StoreLocation(parse_uri(f"{endpoint}/set"), endpoint)
        opened.append(PlainPages(location, DIRECT, quick, refreshed_headers("HTTP_", endpoint, config)))
        return await opened[-1].page("set", f"{endpoint}/set")

    yield gets
    for pages in opened:
        await pages.close()


async def test_a_page_and_its_next(get) -> None:
    page = await get(PAGE)
    assert (page.text, page.statuses) == (PAGE.text, (200,))
    assert page.next_page.endswith("/set/?part=2")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirection_within_the_server_is_followed(get, status: int) -> None:
    page = await get(moved("/set/", status))
    assert page.statuses == (status, 200)
    assert page.address.endswith("/set/")


async def test_credentials_are_sent(get) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(text=request.headers["Authorization"], content_type="text/html")

    assert (await get(handle)).text == "Bearer secret"


async def encoded(request: web.Request) -> web.Response:
    response = web.Response(text="<a>", content_type="text/html")
    response.enable_compression(web.ContentCoding.gzip)
    return response


async def sets_cookie(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": "/set/", "Set-Cookie": "a=b"})


async def breaks(request: web.Request) -> web.Response:
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize(
    "answer",
    [
        moved("http://127.0.0.1:9/set/"),
        moved("https://127.0.0.1/set/"),
        moved("/set"),
        encoded,
        sets_cookie,
        breaks,
    ],
    ids=["another port", "another scheme", "a loop", "encoded", "a cookie", "broken"],
)
async def test_anything_else_is_left_to_the_general_client(get, answer) -> None:
    assert await get(answer) is None


@pytest.mark.parametrize("status", [401, 403, 410, 429, 503])
async def test_an_error_has_its_status(get, status: int) -> None:
    with pytest.raises(WebStatusError) as caught:
        await get(Answer(status=status))
    assert caught.value.status == status


async def test_a_missing_page_and_a_file_are_none(get) -> None:
    with pytest.raises(FileNotFoundError):
        await get(Answer(status=404))
    with pytest.raises(NotADirectoryError):
        await get(Answer(b"x" * 1000, "application/octet-stream"))


async def test_chunks_are_a_page_and_a_cut_one_is_none(get) -> None:
    def chunked(*, cut: bool):
        async def handle(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/html"})
            response.enable_chunked_encoding()
            await response.prepare(request)
            await response.write(b"<a>")
            if cut:
                request.transport.close()
            return response

        return handle

    assert (await get(chunked(cut=False))).text == "<a>"
    with pytest.raises(Unavailable, match="ends after 3 bytes"):
        await get(chunked(cut=True))

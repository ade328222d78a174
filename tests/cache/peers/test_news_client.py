import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from podferry.cache.peers.news_client import NewsClient
from podferry.contract.cache_api import PROGRESS_PATH, Asker, PartNews, Progress, Refusal
from podferry.contract.errors import FerryError, Problem
from podferry.contract.file_part import FilePart
from podferry.contract.manifest import Entry
from tests.support.reserved_port import reserved_port

NEWS = Progress(
    "other",
    "log",
    5,
    tuple(PartNews(FilePart(Entry(name, 3), 0, 3), value) for name, value in (("a", 7), ("b", None))),
    "d",
    3,
)


@pytest.fixture
async def ask():
    """Asks a server that gives one answer; the answer and the request."""
    made = []

    async def asking(status, body, token=None):
        async def respond(request):
            made.append(request)
            return web.Response(status=status, body=body if isinstance(body, bytes) else encoded(body))

        app = web.Application()
        app.router.add_get(PROGRESS_PATH, respond)
        client = NewsClient("s3://b/c?region=x", Asker("me", "digest"), token)
        async with TestServer(app) as server:
            try:
                return await client.news(f"{server.make_url('')}".rstrip("/"), "log", 2, 1.5), made[-1]
            finally:
                await client.close()

    return asking


def encoded(document):
    return msgspec.json.encode(document)


async def test_news_and_who_asks(ask, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    news, request = await ask(200, NEWS, tmp_path / "token")
    assert news == NEWS
    assert dict(request.query) == {
        "uri": "s3://b/c?region=x",
        "log": "log",
        "since": "2",
        "wait": "1.5",
        "holder": "me",
        "digest": "digest",
    }
    assert request.headers["Authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (404, Refusal((Problem("the holder does not have this dataset"),)), "does not have this dataset"),
        (503, b"<html>", "HTTP 503"),
        (200, b"{", "not a valid progress"),
        (200, b'{"format": 99}', "later podferry"),
    ],
)
async def test_any_other_answer_is_an_error(ask, status, body, reason):
    with pytest.raises(FerryError, match=reason):
        await ask(status, body)


async def test_a_missing_token_and_a_holder_that_does_not_respond(ask, tmp_path):
    with pytest.raises(FerryError, match="does not respond"):
        await ask(200, NEWS, tmp_path / "none")
    client = NewsClient("s3://b/c", Asker("me", "digest"))
    with reserved_port() as port, pytest.raises(FerryError, match="does not respond"):
        await client.news(f"http://127.0.0.1:{port}", "", 0)
    await client.close()

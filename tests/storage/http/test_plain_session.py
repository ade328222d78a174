import aiohttp
import pytest
from aiohttp import web

from podferry.storage.http.plain_session import SLICE_BYTES, BufferBody, body_of, open_session


@pytest.fixture
async def session():
    session = open_session("http://127.0.0.1", "")
    yield session
    await session.close()


async def test_requests_are_sent_as_they_are_written(answering, session):
    sent = {}

    async def answer(request):
        sent.update(request.headers, body=await request.read())
        return web.Response(headers={"Content-Encoding": "gzip"}, body=b"\x1f\x8b not decoded")

    data = bytes(range(256)) * (SLICE_BYTES // 100)
    async with session.put(await answering(answer), data=BufferBody(memoryview(data), 5)) as response:
        assert await body_of(response, 100) == b"\x1f\x8b not decoded"
    assert sent["body"] == data
    assert sent["User-Agent"] == "podferry"
    assert not {"Content-Type", "Accept-Encoding"} & set(sent)


async def test_no_more_of_a_body_is_read_than_allowed(answering, session):
    async def answer(request):
        return web.Response(body=bytes(1 << 20))

    async with session.get(await answering(answer)) as response:
        assert await body_of(response, 1000) == bytes(1000)


async def test_cookies_are_not_kept(answering, session):
    async def answer(request):
        response = web.Response(text=request.headers.get("Cookie", ""))
        response.set_cookie("a", "b")
        return response

    url = (await answering(answer)).replace("127.0.0.1", "localhost")
    for _ in range(2):
        async with session.get(url) as response:
            assert await response.text() == ""


async def test_tls_is_verified_with_the_given_certificates(answering, private_ca):
    async def answer(request):
        return web.Response(text="trusted")

    url = await answering(answer, private_ca.server_context("127.0.0.1"))
    async with open_session(url, private_ca.pem) as trusting, trusting.get(url) as response:
        assert await response.text() == "trusted"
    async with open_session(url, "") as other:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await other.get(url)


def test_a_body_is_shown_in_messages():
    assert BufferBody(b"text", 1).decode() == "text"

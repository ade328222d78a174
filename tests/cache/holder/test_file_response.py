import os
from io import FileIO

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from podferry.cache.holder.file_response import SENDFILE_BYTES, send_file
from podferry.contract.manifest import Entry

LARGE = os.urandom(SENDFILE_BYTES * 3)


def opener(path):
    return lambda start, length: FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "r")


@pytest.fixture
async def get(tmp_path):
    (tmp_path / "small").write_bytes(b"0123456789")
    (tmp_path / "large").write_bytes(LARGE)
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("/etc/passwd")

    async def respond(request):
        path = tmp_path / request.match_info["name"]
        try:
            return await send_file(request, opener(path), Entry(path.name, path.stat().st_size, "t"))
        except OSError as error:
            return web.Response(status=418, text=type(error).__name__)

    app = web.Application()
    app.router.add_get("/{name}", respond)
    async with TestServer(app) as server, ClientSession() as session:

        async def getting(name, asked=None, method="GET"):
            headers = {"Range": asked} if asked else {}
            async with session.request(method, server.make_url(f"/{name}"), headers=headers) as response:
                return response.status, await response.read(), response.headers

        yield getting


@pytest.mark.parametrize("name", ["small", "large", "empty"])
async def test_a_file(get, tmp_path, name):
    status, body, headers = await get(name)
    assert (status, body) == (200, (tmp_path / name).read_bytes())
    assert headers["Content-Length"] == str(len(body))
    assert "Content-Range" not in headers


@pytest.mark.parametrize(
    ("name", "asked", "start", "end"),
    [
        ("small", "bytes=2-4", 2, 5),
        ("small", "bytes=9-9", 9, 10),
        ("small", "bytes=8-99", 8, 10),
        ("small", "bytes=-3", 7, 10),
        ("large", "bytes=5-", 5, len(LARGE)),
        ("large", f"bytes=7-{SENDFILE_BYTES + 20}", 7, SENDFILE_BYTES + 21),
    ],
)
async def test_a_range(get, tmp_path, name, asked, start, end):
    data = (tmp_path / name).read_bytes()
    status, body, headers = await get(name, asked)
    assert (status, body) == (206, data[start:end])
    assert headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(data)}"


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=10-20"])
async def test_a_range_beyond_the_end(get, asked):
    status, _, headers = await get("small", asked)
    assert (status, headers["Content-Range"]) == (416, "bytes */10")


@pytest.mark.parametrize("asked", ["bytes=0-1,3-4", "lines=1-2", "bytes=x"])
async def test_a_range_that_is_none_means_everything(get, asked):
    assert (await get("small", asked))[:2] == (200, b"0123456789")


async def test_head_has_no_body(get):
    status, body, headers = await get("large", method="HEAD")
    assert (status, body, headers["Content-Length"]) == (200, b"", str(len(LARGE)))


async def test_a_link_is_not_followed(get):
    assert (await get("link"))[0] == 418

import asyncio
import socket

import pytest

from podferry.cache.holder.holder import run_holder
from podferry.cache.holder.readers import Readers
from podferry.cache.holder.server import HolderServer
from podferry.cache.holder.small_files import response_of, small_request
from podferry.contract.cache_api import HOLDER_HEADER, TOKEN_HEADER, Holder, bundle_path, file_path
from podferry.storage.holder.client import HolderClient
from tests.support.holder_site import holder_stage

HOST = "Host: here\r\n"


def request(path="/v1/files/d1/a/1", header=HOST, method="GET"):
    return f"{method} {path} HTTP/1.1\r\n{header}\r\n".encode()


def test_requests_of_the_fetch_engine_are_known():
    header = f"{HOST}User-Agent: podferry\r\n{TOKEN_HEADER}: x.y\r\n{HOLDER_HEADER}: h\r\n"
    found = small_request(request("/v1/files/d1/a%20b/%C3%BC", header))
    assert (found.digest, found.name) == ("d1", "a b/ü")
    assert found.fields["podferry-token"] == "x.y"


@pytest.mark.parametrize(
    "data",
    [
        request(method="HEAD"),
        request("/v1/status"),
        request("/v1/files/d1/a?b"),
        request(header=f"{HOST}Range: bytes=0-1\r\n"),
        request(header=f"{HOST}Content-Length: 3\r\n"),
        request(header=f"{HOST}Connection: close\r\n"),
        request(header="User-Agent: none\r\n"),
        request(header=f"{HOST}{HOST}"),
        request(header=f"{HOST}Accept: {'x' * 9000}\r\n"),
        request("/v1/files/d1/\xfc"),
        request()[:-2],
        request() + request(),
    ],
)
def test_anything_else_is_left_to_aiohttp(data):
    assert small_request(data) is None


def test_a_request_for_a_bundle_is_known():
    found = small_request(request("/v1/bundles/d1/0-7,9"))
    assert (found.digest, found.name, found.is_bundle) == ("d1", "0-7,9", True)
    assert not small_request(request()).is_bundle


@pytest.fixture
async def holder(content, tmp_path):
    """A holder's stage, its digest and its port."""
    stage = holder_stage(content.uri, tmp_path / "held")
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    running = asyncio.create_task(run_holder([stage], listener, "here"))
    client = HolderClient(Holder(f"http://127.0.0.1:{port}"))
    held = await client.dataset(str(content.uri))
    await client.close()
    yield held.manifest.digest, port
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def ask(reader, writer, data):
    """Status line and body of a response."""
    writer.write(data)
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().splitlines()[1:] if line)
    return head.split(b" ", 2)[1], await reader.readexactly(int(fields["Content-Length"]))


async def test_a_connection_goes_to_aiohttp_with_its_first_other_request(content, holder):
    digest, port = holder
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = file_path(digest, "a/1")
    one = b"200", content.objects["d/a/1"]
    assert await ask(reader, writer, request(path)) == one
    assert await ask(reader, writer, request(file_path(digest, "gone")))  # aiohttp's from here on
    assert await ask(reader, writer, request(path)) == one
    writer.close()
    await writer.wait_closed()


async def test_a_bundle_is_sent_at_once_and_by_aiohttp(content, holder):
    digest, port = holder
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    both = content.objects["d/a/1"] + content.objects["d/a/2"]
    assert await ask(reader, writer, request(bundle_path(digest, "0-1"))) == (b"200", both)
    status, body = await ask(reader, writer, request(bundle_path(digest, "0-9")))
    assert (status, b"too much" in body) == (b"404", True)
    assert await ask(reader, writer, request(bundle_path(digest, "0-1"))) == (b"200", both)  # aiohttp's now
    assert (await ask(reader, writer, request(bundle_path("other", "0"))))[0] == b"404"
    writer.close()
    await writer.wait_closed()


async def test_requests_in_one_packet_are_all_answered(content, holder):
    digest, port = holder
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    both = request(file_path(digest, "a/1")) + request(file_path(digest, "a/2"))
    assert await ask(reader, writer, both) == (b"200", content.objects["d/a/1"])
    assert await ask(reader, writer, b"") == (b"200", content.objects["d/a/2"])
    writer.close()
    await writer.wait_closed()


async def test_an_idle_connection_ends_with_the_holder(content, tmp_path):
    stage = holder_stage(content.uri, tmp_path / "held")
    listener = socket.create_server(("127.0.0.1", 0))
    running = asyncio.create_task(run_holder([stage], listener, "here"))
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    await stage.wait(20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await reader.read() == b""
    writer.close()


async def test_a_token_that_is_not_known_is_left_to_aiohttp(content, tmp_path):
    asked = []

    async def review(token, audience):
        asked.append(token)
        user = {"username": "system:serviceaccount:team:default"}
        return {"authenticated": token == "good", "audiences": [audience], "user": user}

    stage = holder_stage(content.uri, tmp_path / "held")
    await stage.fill()
    readers = Readers(review, ["team"])
    server = HolderServer([stage], "here", readers)
    digest, header = stage.complete.digest, f"{HOST}Authorization: Bearer "
    path = file_path(digest, "a/1")
    known, unknown = (small_request(request(path, f"{header}{token}\r\n")) for token in ("good", "bad"))
    assert server.small_file(known, "here") is None
    await readers.check("Bearer good")
    assert server.small_file(known, "here") == content.objects["d/a/1"]
    assert server.small_file(unknown, "here") is None
    path = bundle_path(digest, "0")
    known, unknown = (small_request(request(path, f"{header}{token}\r\n")) for token in ("good", "bad"))
    assert server.small_file(known, "here") == content.objects["d/a/1"]
    assert server.small_file(unknown, "here") is None
    assert (server.served_bytes, asked) == (2 * len(content.objects["d/a/1"]), ["good"])
    await stage.close()


def test_a_response_is_one_message():
    head, _, body = response_of(b"xyz").partition(b"\r\n\r\n")
    assert body == b"xyz"
    assert b"\r\nContent-Length: 3\r\n" in head

import asyncio
import socket

import pytest

from podferry.cache.holder.connections import Connections
from podferry.cache.holder.holder import run_holder
from podferry.cache.holder.readers import Readers
from podferry.cache.holder.server import HolderServer
from podferry.cache.holder.small_files import SmallFiles, response_head, small_request
from podferry.cache.holder.small_reads import Content
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
    assert b"".join(server.small_file(known, "here").pieces) == content.objects["d/a/1"]
    assert server.small_file(unknown, "here") is None
    path = bundle_path(digest, "0")
    known, unknown = (small_request(request(path, f"{header}{token}\r\n")) for token in ("good", "bad"))
    assert b"".join(server.small_file(known, "here").pieces) == content.objects["d/a/1"]
    assert server.small_file(unknown, "here") is None
    assert (server.served_bytes, asked) == (2 * len(content.objects["d/a/1"]), ["good"])
    await stage.close()


class Transport(asyncio.Transport):
    """One whose peer takes bytes when `drain` is called."""

    def __init__(self):
        super().__init__()
        self.sent, self.left, self.paused, self.aborted = b"", 0, False, False

    def set_write_buffer_limits(self, high=None, low=None):
        self.high = high

    def get_write_buffer_size(self):
        return self.left

    def write(self, data):
        self.sent += data
        self.left += len(data)

    def drain(self, protocol):
        self.left = 0
        protocol.resume_writing()

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        self.paused = False

    def abort(self):
        self.aborted = True


@pytest.fixture
def slow():
    """Connects a reader that takes nothing; returns its transport and its protocol."""

    def connect(length, pieces):
        transport = Transport()
        protocol = SmallFiles(lambda request, address: Content(length, pieces), Unused, Connections(9))
        protocol.connection_made(transport)
        protocol.data_received(request())
        return transport, protocol

    return connect


class Unused(asyncio.Protocol):
    def __init__(self):
        raise AssertionError("aiohttp is not asked")


def test_the_next_piece_is_read_when_the_reader_has_taken_the_last_one(slow):
    read = []

    def pieces():
        for piece in (b"ab", b"cd", b"e"):
            read.append(piece)
            yield piece

    transport, protocol = slow(5, pieces())
    assert (transport.sent, transport.paused) == (response_head(5) + b"ab", True)
    assert (read, transport.high) == ([b"ab"], 0)
    transport.drain(protocol)
    assert read == [b"ab", b"cd"]
    transport.drain(protocol)
    assert transport.paused  # until everything is taken
    transport.drain(protocol)
    assert (transport.sent, transport.paused) == (response_head(5) + b"abcde", False)
    protocol.data_received(request())
    assert transport.sent.endswith(b"e" + response_head(5))


def test_a_file_that_is_gone_in_the_middle_ends_the_connection(slow):
    def pieces():
        yield b"ab"
        raise FileNotFoundError("c")

    transport, protocol = slow(5, pieces())
    assert not transport.aborted
    transport.drain(protocol)
    assert transport.aborted


def test_a_first_file_that_is_gone_is_left_to_aiohttp(slow):
    def pieces():
        raise FileNotFoundError("a")
        yield b""

    with pytest.raises(AssertionError, match="aiohttp is not asked"):
        slow(5, pieces())

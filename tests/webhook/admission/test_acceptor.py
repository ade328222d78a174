"""Connections that send no request, over TLS on loopback."""

from __future__ import annotations

import asyncio
import base64
import errno
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from podferry.webhook.admission import acceptor as acceptor_module
from podferry.webhook.admission.acceptor import Acceptor
from podferry.webhook.cluster.rotation import Rotation
from tests.support.memory_cluster import MemoryCluster

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Open = Callable[[], Coroutine[Any, Any, Stream]]


class Echo(asyncio.Protocol):
    """Sends back what it gets; only upper case is a request."""

    acceptor: Acceptor
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if data.isupper():
            self.acceptor.has_arrived(self)
        self.transport.write(data)


@pytest.fixture
async def server(rotation: Rotation, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """The port of an acceptor for few connections."""
    monkeypatch.setattr(acceptor_module, "MAX_SILENT", 3)
    await rotation.refresh()
    made = Acceptor(Echo, rotation.context)
    monkeypatch.setattr(Echo, "acceptor", made, raising=False)
    yield await made.open("127.0.0.1", 0)
    await made.close()


@pytest.fixture
def trust(cluster: MemoryCluster, server: int) -> ssl.SSLContext:
    bundle = base64.b64decode(cluster.bundles["mutatingwebhookconfigurations/podferry"]).decode()
    return ssl.create_default_context(cadata=bundle)


@pytest.fixture
def plain(server: int) -> Open:
    return lambda: asyncio.open_connection("127.0.0.1", server)


@pytest.fixture
def secure(server: int, trust: ssl.SSLContext) -> Open:
    return lambda: asyncio.open_connection("127.0.0.1", server, ssl=trust, server_hostname="localhost")


async def echo(stream: Stream, text: bytes) -> bytes:
    stream[1].write(text)
    return await stream[0].read(len(text))


async def is_closed(stream: Stream) -> bool:
    """Whether the server closes it; hangs if it does not."""
    try:
        return await stream[0].read() == b""
    except ConnectionResetError:
        return True


async def test_the_oldest_silent_connections_are_closed(plain: Open, secure: Open) -> None:
    """Whatever they have sent so far: nothing, a byte of a handshake, all of it, a piece of a request."""
    used = await secure()
    assert await echo(used, b"REQUEST") == b"REQUEST"
    nothing, byte, whole, piece = await plain(), await plain(), await secure(), await secure()
    byte[1].write(b"\x16")
    assert await echo(piece, b"piece") == b"piece"
    oldest = [nothing, byte, whole, piece]
    newest = [await secure() for _ in range(3)]
    assert all([await is_closed(stream) for stream in oldest])
    for stream in (used, *newest):
        assert await echo(stream, b"REQUEST") == b"REQUEST"
    for _, writer in (used, *oldest, *newest):
        writer.close()


@pytest.mark.parametrize("sent", [b"", b"\x16", b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_handshake_must_arrive_in_time(
    plain: Open, secure: Open, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor_module, "FIRST_REQUEST_SECONDS", 0.2)
    late = await plain()
    late[1].write(sent)
    await late[0].read()  # an alert, if what was sent is no TLS
    late[1].close()


async def test_a_request_must_arrive_in_time(secure: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor_module, "FIRST_REQUEST_SECONDS", 3.0)
    used, silent = await secure(), await secure()
    assert await echo(used, b"REQUEST") == b"REQUEST"
    assert await is_closed(silent)
    assert await echo(used, b"AGAIN") == b"AGAIN"
    for _, writer in (used, silent):
        writer.close()


async def test_accepting_goes_on_when_files_were_exhausted(
    plain: Open, secure: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    accept, failures = loop.sock_accept, [OSError(errno.EMFILE, "too many open files")]

    async def failing(listening: Any) -> Any:
        if failures:
            raise failures.pop()
        return await accept(listening)

    monkeypatch.setattr(loop, "sock_accept", failing)
    (await plain())[1].close()  # the accept that was waiting takes it
    stream = await secure()
    assert await echo(stream, b"REQUEST") == b"REQUEST"
    assert not failures
    stream[1].close()

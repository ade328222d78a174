"""Connections of aiohttp's sessions: none is left when a session is closed."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
import uvloop

from podferry.storage.http.connector import Connector
from podferry.storage.http.plain_session import BufferBody
from podferry.storage.network.tls import tls_context
from tests.support.client_connections import client_connections

REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
MORE_THAN_SOCKETS_HOLD = bytes(64 << 20)
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
"""Their transports differ, those of TLS too."""


class RefusingServer:
    """Refuses uploads before it has read them.

    Attributes:
        port: Where it listens.
        reading: Once set, it reads what has been sent all the same, to the end of the connection.
        ended: Set at that end.
    """

    def __init__(self, tls):
        self._tls = tls
        self.port, self.reading, self.ended = 0, asyncio.Event(), asyncio.Event()

    async def refuse(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(REFUSAL)
        await self.reading.wait()
        while await reader.read(1 << 20):
            pass
        writer.transport.abort()
        self.ended.set()

    @asynccontextmanager
    async def serving(self):
        async with await asyncio.start_server(self.refuse, "127.0.0.1", 0, ssl=self._tls) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield
            self.reading.set()
            await self.ended.wait()


class KeepingConnector(Connector):
    """So that transports that have ended are still there when it is closed."""

    kept = None

    async def connect(self, *args, **options):
        connection = await super().connect(*args, **options)
        self.kept = connection.transport
        return connection


@pytest.fixture(params=["plain", "TLS"])
def tls(request, private_ca):
    """Contexts of a client and of a server, or no contexts."""
    if request.param == "plain":
        return True, None
    return tls_context(private_ca.pem), private_ca.server_context("127.0.0.1")


async def refused_upload(connector, tls, *, read_later):
    """How many connections there are before and after the session is closed."""
    client_tls, server_tls = tls
    server = RefusingServer(server_tls)
    async with server.serving():
        async with aiohttp.ClientSession(connector=connector(ssl=client_tls)) as session:
            scheme = "https" if server_tls else "http"
            body = BufferBody(MORE_THAN_SOCKETS_HOLD, 5)
            async with session.put(f"{scheme}://127.0.0.1:{server.port}", data=body) as response:
                assert response.status == 403
            if read_later:
                server.reading.set()
                await server.ended.wait()
            before = client_connections(server.port)
        return before, client_connections(server.port)


@LOOPS
def test_a_body_that_a_server_refuses_to_read_keeps_no_connection_open(loop, tls):
    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(refused_upload(Connector, tls, read_later=False)) == (1, 0)


@LOOPS
def test_connections_that_have_ended_by_themselves_are_let_alone(loop, tls):
    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(refused_upload(KeepingConnector, tls, read_later=True)) == (0, 0)


@LOOPS
def test_a_connection_of_tls_that_was_closed_twice_does_not_fail_the_next_one(loop, private_ca):
    async def ask_twice():
        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.close()

        context = private_ca.server_context("127.0.0.1")
        connector = KeepingConnector(ssl=tls_context(private_ca.pem))
        async with (
            await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server,
            aiohttp.ClientSession(connector=connector) as session,
        ):
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            for _ in range(2):
                async with session.get(url) as response:
                    assert response.status == 200
                connector.kept.close()
                connector.kept.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(ask_twice())

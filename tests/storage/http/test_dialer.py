import asyncio
import socket

import pytest

from podferry.storage.http import dialer
from podferry.storage.http.dialer import Dialer
from podferry.storage.request_builder import Origin
from tests.support.patience import PATIENCE

ADDRESSES = ["127.0.0.1", "127.0.0.2"]


@pytest.fixture
async def server():
    """A server on all addresses of this machine: its port."""
    running = await asyncio.start_server(lambda _, writer: writer.close(), "0.0.0.0", 0)
    yield running.sockets[0].getsockname()[1]
    running.close()
    await running.wait_closed()


class Connected(asyncio.Protocol):
    def __init__(self, peers):
        self._peers = peers

    def connection_made(self, transport):
        self._peers.append(transport.get_extra_info("peername")[0])
        transport.close()


async def test_a_name_is_resolved_once_and_its_addresses_take_turns(server, monkeypatch):
    resolved = []

    async def addresses(host, port, **_):
        resolved.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ADDRESSES * 2]

    loop, peers = asyncio.get_running_loop(), []
    found = Dialer(Origin("store.example", server, tls=False), lambda: Connected(peers), peers.clear)
    resolve = loop.getaddrinfo

    async def only_the_name(host, port, **options):
        return await (addresses if host == "store.example" else resolve)(host, port, **options)

    monkeypatch.setattr(loop, "getaddrinfo", only_the_name)
    for _ in range(4):
        await found.dial()
    assert peers == ADDRESSES * 2
    assert resolved == ["store.example"]


async def test_a_connection_that_cannot_be_opened_stays_pending_for_a_while(monkeypatch):
    """Otherwise the pool would dial again at once, without end."""
    monkeypatch.setattr(dialer, "REDIAL_SECONDS", 30)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    failed = asyncio.Event()
    refused = Dialer(Origin("127.0.0.1", port, tls=False), asyncio.Protocol, failed.set)
    refused.start()
    await asyncio.wait_for(failed.wait(), PATIENCE)
    (task,) = refused.tasks
    task.cancel()
    await asyncio.wait([task])
    assert not refused.tasks
    with pytest.raises(ConnectionRefusedError):
        await refused.dial()

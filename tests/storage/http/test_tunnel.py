"""The connection pool behind a proxy, on both event loops."""

import asyncio

import pytest
import uvloop

from podferry.storage.http.tunnel import ProxyRefused, open_tunnel
from podferry.storage.network.proxies import Proxy
from podferry.storage.network.tls import tls_context
from podferry.storage.request_builder import Origin
from tests.support.connect_proxy import connect_proxy, tls_relay
from tests.support.patience import PATIENCE


class Echoed(asyncio.Protocol):
    """Sends a line when it is connected; `received` is what came back."""

    def __init__(self):
        self.received = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        transport.write(b"hello\n")
        self.transport = transport

    def data_received(self, data):
        if not self.received.done():
            self.received.set_result(data)


async def echo(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()


async def through_a_tunnel(private_ca, names=("store",), **settings):
    made = []

    def protocol():
        made.append(Echoed())
        return made[0]

    async with connect_proxy() as proxy, await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        context = private_ca.server_context(*names)
        async with tls_relay(context, server.sockets[0].getsockname()[1]) as port:
            proxy.ports["store:443"] = port
            for name, value in settings.items():
                setattr(proxy, name, value)
            used = Proxy(proxy.url.replace("//", "//u:p@"))
            origin = Origin("store", 443, tls=True, ca=private_ca.pem, proxy=used)
            await open_tunnel("127.0.0.1", used, tls_context(private_ca.pem), origin, protocol)
            received = await asyncio.wait_for(made[0].received, PATIENCE)
            made[0].transport.abort()
            return received, proxy.requests


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_tls_runs_inside_the_tunnel(private_ca, factory):
    with asyncio.Runner(loop_factory=factory) as runner:
        found = runner.run(through_a_tunnel(private_ca, password="u:p"))
    assert found == (b"hello\n", ["CONNECT store:443"])


@pytest.mark.parametrize("settings", [{"password": "other:x"}, {"refusal": 403}, {"ports": {}}])
async def test_a_refusal_is_an_error_of_the_connection(private_ca, settings):
    with pytest.raises(ProxyRefused, match="the proxy answers HTTP"):
        await through_a_tunnel(private_ca, **settings)


async def test_the_servers_certificate_is_checked_not_the_proxys(private_ca):
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        await through_a_tunnel(private_ca, names=("other",))


async def test_a_proxy_that_closes(private_ca):
    async def close(reader, writer):
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        origin = Origin("store", 443, tls=True)
        with pytest.raises(OSError, match=r"closed|reset|abort"):
            await open_tunnel(
                "127.0.0.1", Proxy(f"http://127.0.0.1:{port}"), tls_context(), origin, asyncio.Protocol
            )

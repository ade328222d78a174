"""Opens a TLS connection through an HTTP proxy: `CONNECT host:port` (RFC 9110, 9.3.6), then TLS inside."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from podferry.storage.network.proxies import Proxy
from podferry.storage.request_builder import Origin

HEAD_END = b"\r\n\r\n"
MAX_HEAD_BYTES = 64 * 1024


class ProxyRefused(OSError):
    """The proxy opens no tunnel; the message has its status line."""


async def open_tunnel(
    address: str,
    proxy: Proxy,
    tls: ssl.SSLContext,
    origin: Origin,
    make_protocol: Callable[[], asyncio.BaseProtocol],
) -> None:
    """Connect a protocol to `origin` through the proxy at `address`.

    Raises:
        OSError: The proxy does not respond or refuses, or the origin's certificate is not trusted.
    """
    loop = asyncio.get_running_loop()
    tunnel = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        tunnel.setblocking(False)
        await loop.sock_connect(tunnel, (address, proxy.port))
        await loop.sock_sendall(tunnel, _connect_request(proxy, origin))
        _check_answer(await _read_head(tunnel))
        await loop.create_connection(make_protocol, sock=tunnel, ssl=tls, server_hostname=origin.host)
    except BaseException:
        tunnel.close()
        raise


def _connect_request(proxy: Proxy, origin: Origin) -> bytes:
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    target = f"{host}:{origin.port}"
    authorization = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n".encode()


async def _read_head(tunnel: socket.socket) -> bytes:
    """The head of the proxy's answer. Nothing follows it: in TLS the client speaks first."""
    loop, head = asyncio.get_running_loop(), b""
    while HEAD_END not in head and len(head) < MAX_HEAD_BYTES:
        data = await loop.sock_recv(tunnel, 4096)
        if not data:
            raise ProxyRefused("the proxy closed the connection")
        head += data
    return head


def _check_answer(head: bytes) -> None:
    line = head.partition(b"\r\n")[0].decode("latin-1")
    if not (line.startswith("HTTP/1.") and line[8:10] == " 2"):
        raise ProxyRefused(f"the proxy answers {line[:100]}")

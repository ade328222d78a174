"""TLS contexts of our own connections, and whether a port speaks TLS at all."""

from __future__ import annotations

import asyncio
import functools
import ssl
from contextlib import suppress


@functools.cache
def tls_context(ca: str = "") -> ssl.SSLContext:
    """Trusts what the engines trust: the system's certificates and those of `ca`, as PEM."""
    context = ssl.create_default_context()
    # From Python 3.13 on, the default rejects CAs without key identifiers, which obstore accepts and which
    # many companies use.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if ca:
        context.load_verify_locations(cadata=ca)
    context.set_alpn_protocols(["http/1.1"])
    return context


async def speaks_tls(host: str, port: int, seconds: float) -> bool:
    """Whether a server completes a TLS handshake, whatever its certificate; sends no request."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except OSError:  # includes TimeoutError and TLS errors
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True

"""Checks of the way to a server: its name, the connection, TLS, the clock."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from email.utils import parsedate_to_datetime

from podferry.storage.doctor.address import ServerAddress
from podferry.storage.doctor.finding import Finding, Outcome, ok, skipped
from podferry.storage.errors.connection_failure import openssl_failure
from podferry.storage.request_builder import USER_AGENT_LINE, Origin

MAX_SKEW_SECONDS = 900
"""From here on requests are refused. Sources: Amazon S3, `RequestTimeTooSkewed`; Azure Storage, "Authorize
with Shared Key"; Alibaba Cloud OSS, `RequestTimeTooSkewed`."""
MAX_ADDRESSES_SHOWN = 3

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def examine_connection(address: ServerAddress, seconds: float) -> AsyncIterator[Finding]:
    """Yield the findings in their order, up to the first failure.

    Args:
        address: Of the server.
        seconds: Timeout of each step.
    """
    origin = address.origin
    if origin.proxy is not None:
        yield skipped("name", f"the proxy {origin.proxy} resolves it and connects")
        return
    name = await _name(origin, seconds)
    yield name
    if name.outcome is Outcome.FAILED:
        return
    connection = await _connection(origin, seconds)
    yield connection
    if connection.outcome is Outcome.FAILED:
        return
    for finding in await _spoken(address, seconds):
        yield finding


async def _name(origin: Origin, seconds: float) -> Finding:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            found = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        remedy = "Correct the host, or the DNS of this machine or pod"
        return Finding("name", Outcome.FAILED, f"{origin.host} cannot be resolved ({_why(error)})", remedy)
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    more = len(addresses) - MAX_ADDRESSES_SHOWN
    shown = ", ".join(addresses[:MAX_ADDRESSES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return ok("name", f"{origin.host} is {shown}")


async def _connection(origin: Origin, seconds: float) -> Finding:
    place, started = f"{origin.host} port {origin.port}", time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(origin.host, origin.port)
    except OSError as error:
        remedy = "Start the server, correct the port, or open it in firewalls and network policies"
        return Finding("connection", Outcome.FAILED, f"{place} does not accept one ({_why(error)})", remedy)
    milliseconds = (time.monotonic() - started) * 1000
    await _close(writer)
    return ok("connection", f"{place} in {milliseconds:.1f} ms")


async def _spoken(address: ServerAddress, seconds: float) -> list[Finding]:
    """TLS, and the clock of a server that speaks HTTP."""
    origin = address.origin
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(origin.host, origin.port, ssl=origin.ssl_context())
    except ssl.SSLCertVerificationError as error:
        return [_untrusted(error)]
    except OSError as error:
        remedy = "If the server has no TLS, write http:// in the endpoint, or the scheme without it"
        return [Finding("TLS", Outcome.FAILED, f"no handshake ({_why(error)})", remedy)]
    try:
        clock = [await _clock((reader, writer), origin.host, seconds)] if address.speaks_http else []
        return [_encryption(writer, address), *clock]
    finally:
        await _close(writer)


def _untrusted(error: ssl.SSLCertVerificationError) -> Finding:
    remedy = "Name the CA in SSL_CERT_FILE or the Secret's key `ca`, or correct the name or the clock"
    return Finding("TLS", Outcome.FAILED, f"the certificate is not valid: {error.verify_message}", remedy)


def _encryption(writer: asyncio.StreamWriter, address: ServerAddress) -> Finding:
    connection = writer.get_extra_info("ssl_object")
    if connection is None:
        return skipped("TLS", address.encryption or "not used: what is sent can be read on the way")
    certificate = connection.getpeercert() or {}
    return ok(
        "TLS", f"{connection.version()}, certificate valid until {certificate.get('notAfter', 'unknown')}"
    )


async def _clock(streams: Streams, host: str, seconds: float) -> Finding:
    """Compare clocks by the `Date` of any response (RFC 9110, 6.6.1)."""
    reader, writer = streams
    request = f"HEAD / HTTP/1.1\r\nHost: {host}\r\n{USER_AGENT_LINE}Connection: close\r\n\r\n"
    head = b""
    with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        async with asyncio.timeout(seconds):
            writer.write(request.encode())
            head = await reader.readuntil(b"\r\n\r\n")
    skew = _skew(head)
    if skew is None:
        return skipped("clock", "the server does not state its time")
    measured = f"{abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} the server's"
    if abs(skew) < MAX_SKEW_SECONDS:
        return ok("clock", measured)
    return Finding("clock", Outcome.FAILED, measured, "Set the clock: signed requests are refused")


def _skew(head: bytes) -> float | None:
    """Seconds by which the server's clock is later than this one."""
    lines = head.decode("latin-1").split("\r\n")
    dates = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("date:")]
    try:
        return parsedate_to_datetime(dates[0]).timestamp() - time.time()
    except (IndexError, ValueError):
        return None


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLError):  # its number is OpenSSL's
        failure = openssl_failure(error)
        return failure.reason if failure else error.reason or str(error)
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error)

"""What answers in the place of an SMB server: an error that names it, in bounded time."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podferry.contract.errors import FerryError, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.smb.store import SmbStore
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.patience import PATIENCE
from tests.support.scripted_smb import framed, message

HASTY = Limits(connect_seconds=1, stall_seconds=0.3, request_seconds=0.6, retries=1, retry_seconds=0.5)
CONFIG = StoreConfig(credentials={"SMB_USERNAME": "user", "SMB_PASSWORD": "password"})
NEGOTIATED = struct.Struct("<HHHH16sIIIIQQHHI")
GARBAGE = {
    "nothing": b"",
    "text": b"220 ready for FTP\r\n" * 20,
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "SMB 1": framed(b"\xffSMB" + bytes(100)),
    "a header alone": framed(message(0)),
    "half a header": framed(message(0)[:40]),
    "a length without a frame": b"\x00\xff\xff\xff" + bytes(100),
    "an encrypted frame": framed(b"\xfdSMB" + bytes(100)),
    "a chain into nothing": framed(message(0, following=1 << 30)),
    "a chain to itself": framed(message(0, following=8)),
    "an unknown dialect": framed(message(0, body=NEGOTIATED.pack(65, 1, 0x9999, 0, *[bytes(16)], *[0] * 9))),
    "a token out of bounds": framed(
        message(0, body=NEGOTIATED.pack(65, 1, 0x0210, 0, bytes(16), 0, 1, 1, 1, 0, 0, 60000, 60000, 0))
    ),
    "contexts without end": framed(
        message(0, body=NEGOTIATED.pack(65, 1, 0x0311, 65535, bytes(16), 0, 1, 1, 1, 0, 0, 0, 0, 64))
    ),
    "a refusal": framed(message(0, status=0xC000000D, body=bytes(9))),
    "another's number": framed(message(77, body=bytes(64))),
}


@asynccontextmanager
async def answering(data: bytes, seconds: float = 0) -> AsyncIterator[SmbStore]:
    """A store at a server that sends these bytes, one by one if each takes some seconds."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readexactly(4)
            for start in range(0, len(data), 1 if seconds else max(1, len(data))):
                writer.write(data[start : start + 1] if seconds else data)
                await writer.drain()
                await asyncio.sleep(seconds)
            await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    store = SmbStore(
        parse_uri(f"smb://127.0.0.1:{server.sockets[0].getsockname()[1]}/share/d"), CONFIG, HASTY
    )
    try:
        async with asyncio.timeout(PATIENCE):
            yield store
    finally:
        await store.close()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("kind", GARBAGE)
async def test_what_is_no_negotiation_is_an_error(kind: str) -> None:
    async with answering(GARBAGE[kind]) as store:
        for call in (store.children(), store.read("a")):
            with pytest.raises(FerryError) as caught:
                await call
            assert str(caught.value).isprintable()


async def test_a_server_that_sends_drop_by_drop_is_an_error() -> None:
    async with answering(framed(message(0, body=bytes(1 << 16))), seconds=0.1) as store:
        with pytest.raises(FerryError):
            await store.children()


async def test_a_server_that_hangs_up_while_the_dialect_is_negotiated_is_named() -> None:
    """As Samba and Windows do where only SMB 1 is enabled."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.transport.abort()
        await asyncio.sleep(0)  # a transport closes its socket one iteration later

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        store = SmbStore(parse_uri(f"smb://{address}/share/d"), CONFIG, HASTY)
        with pytest.raises(Unavailable, match=r"before it says anything .*that SMB 2 or later is enabled"):
            await store.children()
        await store.close()

"""A server of SMB 1 is distinguished from one that is busy, or that speaks something else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podferry.storage.smb.old_server import question, speaks_only_smb_1
from tests.support.patience import PATIENCE


@asynccontextmanager
async def answering_with(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """The port of a server that answers one request so, and what it has received."""
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readexactly(len(question())))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], received


@pytest.mark.parametrize(
    ("answer", "is_old"),
    [
        (b"\0\0\0\x23\xffSMBr" + bytes(30), True),
        (b"\0\0\0\x40\xfeSMB@" + bytes(59), False),
        (b"SSH-2.0-OpenSSH_9.2\r\n", False),
        (b"\0\0", False),
        (b"", False),
    ],
)
async def test_the_answer_shows_it(answer: bytes, is_old: bool) -> None:
    async with answering_with(answer) as (port, received):
        assert await speaks_only_smb_1("127.0.0.1", port, PATIENCE) is is_old
    assert received == [question()]


async def test_no_answer_is_no_sign_of_it() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert not await speaks_only_smb_1("127.0.0.1", port, 0.1)
    assert not await speaks_only_smb_1("127.0.0.1", port, PATIENCE)  # nobody listens any more


def test_the_question_has_the_length_that_it_states() -> None:
    text = question()
    assert int.from_bytes(text[:4], "big") == len(text) - 4
    assert int.from_bytes(text[37:39], "little") == len(text) - 39

import asyncio
import socket
from collections.abc import Iterator

import pytest

from podferry.storage.ftp.readiness import Readiness
from tests.support.patience import PATIENCE


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


async def received(readiness: Readiness, watched: socket.socket) -> bytes:
    buffer = memoryview(bytearray(100))
    async with asyncio.timeout(PATIENCE):
        return bytes(buffer[: await readiness.receive_into(watched, buffer)])


async def test_bytes_and_the_end_are_waited_for(pair: tuple[socket.socket, socket.socket]) -> None:
    (ours, theirs), readiness = pair, Readiness()
    readiness.add(ours)
    readiness.add(ours)  # does nothing
    theirs.send(b"before")
    assert await received(readiness, ours) == b"before"
    for text in (b"one", b"two"):
        waiting = asyncio.create_task(received(readiness, ours))
        await asyncio.sleep(0)
        theirs.send(text)
        assert await waiting == text
    theirs.close()
    assert await received(readiness, ours) == b""
    readiness.close()


async def test_what_arrives_after_a_cancelled_wait_is_for_the_next(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    (ours, theirs), readiness = pair, Readiness()
    readiness.add(ours)
    waiting = asyncio.create_task(received(readiness, ours))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    theirs.send(b"late")
    assert await received(readiness, ours) == b"late"
    readiness.close()

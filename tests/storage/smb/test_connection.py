"""Responses reach their requests, whatever order they come in; broken servers end the connection."""

import asyncio

import pytest

from podferry.storage.smb.connection import Connection
from podferry.storage.smb.messages import CREDIT_BYTES, IS_ASYNC, Command, Request
from podferry.storage.smb.negotiation import AES_GMAC, SMB_3_1_1, Negotiated
from podferry.storage.smb.nt_status import PENDING, ConnectionLost, ProtocolError
from podferry.storage.smb.signing import Signer
from tests.support.patience import PATIENCE
from tests.support.scripted_smb import connected, framed, message, numbers

REQUEST = Request(Command.CLOSE, b"12345")
LARGE = Request(Command.READ, b"12345", 3 * CREDIT_BYTES)
SIGNED = Negotiated(SMB_3_1_1, 0, 0, b"", 0, 0, 0, AES_GMAC, 0, b"")


async def statuses(connection: Connection, *requests: Request) -> list[int]:
    async with asyncio.timeout(PATIENCE):
        return [response.status for response in await connection.call(*requests)]


async def test_a_chain_is_one_frame_and_has_a_response_for_each():
    def answer(frame):
        first, second = numbers(frame)
        padded = message(first, 5, b"1234567890123456", following=80, granted=9)
        yield framed(padded + message(second, 6))

    async with connected(answer) as connection:
        connection._credits = 2
        assert await statuses(connection, REQUEST, REQUEST) == [5, 6]


async def test_responses_come_in_any_order_and_in_any_pieces():
    waiting = []

    def answer(frame):
        waiting.append(numbers(frame)[0])
        if len(waiting) == 3:
            data = b"".join(framed(message(number, number)) for number in reversed(waiting))
            yield from (data[at : at + 7] for at in range(0, len(data), 7))

    async with connected(answer) as connection:
        connection._credits = 3
        found = await asyncio.gather(*(statuses(connection, REQUEST) for _ in range(3)))
        assert found == [[0], [1], [2]]


async def test_a_large_frame_is_whole():
    body = bytes(range(256)) * 4096

    def answer(frame):
        yield framed(message(numbers(frame)[0], 0, body))
        yield framed(message(99))

    async with connected(answer) as connection:
        (response,) = await connection.call(REQUEST)
        assert response.at(64, len(body)) == body
        with pytest.raises(ProtocolError):
            response.at(65, len(body))


async def test_an_interim_response_is_none():
    def answer(frame):
        (number,) = numbers(frame)
        yield framed(message(number, PENDING, flags=IS_ASYNC))
        yield framed(message(number, 4))

    async with connected(answer) as connection:
        assert await statuses(connection, REQUEST) == [4]


async def test_requests_wait_for_credits_in_their_order():
    seen = []

    def answer(frame):
        seen.extend(numbers(frame))
        yield framed(message(numbers(frame)[0], granted=4 if len(seen) == 1 else 3))

    async with connected(answer) as connection:
        connection.large_requests = True
        await asyncio.gather(
            statuses(connection, REQUEST), statuses(connection, LARGE), statuses(connection, REQUEST)
        )
    assert seen == [0, 1, 4]


async def test_a_server_that_grants_too_little_is_given_up():
    def answer(frame):
        yield framed(message(numbers(frame)[0], granted=1))

    async with connected(answer) as connection:
        connection.large_requests = True
        await statuses(connection, REQUEST)
        with pytest.raises(ConnectionLost, match="grants 1 credits, 3 are needed"):
            await statuses(connection, LARGE)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        framed(b"\xffSMB" + bytes(80)),
        framed(message(0, following=20)),
        framed(b"\xfdSMB" + bytes(80)),
        framed(b"1234"),
    ],
)
async def test_what_is_no_response_ends_the_connection(data):
    async with connected(lambda frame: [data]) as connection:
        with pytest.raises(ProtocolError):
            await statuses(connection, REQUEST)
        assert connection.closed
        with pytest.raises(ConnectionLost, match="closed"):
            await statuses(connection, REQUEST)


@pytest.mark.parametrize("flags", [0, 0x8])
async def test_a_response_without_the_right_signature_is_refused(flags):
    async with connected(lambda frame: [framed(message(numbers(frame)[0], flags=flags))]) as connection:
        connection.signer = Signer(SIGNED, bytes(16))
        with pytest.raises(ProtocolError, match="sign"):
            await statuses(connection, REQUEST)


async def test_a_server_that_hangs_is_given_up():
    async with connected(lambda frame: [], stall_seconds=0.05) as connection:
        with pytest.raises(ConnectionLost, match="no response"):
            await statuses(connection, REQUEST)


async def test_a_server_that_closes_fails_every_call():
    def answer(frame):
        raise ConnectionResetError

    async with connected(answer) as connection:
        connection._credits = 1
        found = await asyncio.gather(
            *(statuses(connection, REQUEST) for _ in range(3)), return_exceptions=True
        )
        assert all(isinstance(error, ConnectionLost) for error in found)


async def test_a_cancelled_call_returns_its_credits():
    waiting = []

    def answer(frame):
        waiting.extend(numbers(frame))
        yield framed(message(waiting[-1]))

    async with connected(answer) as connection:
        first = asyncio.create_task(statuses(connection, REQUEST))
        await asyncio.sleep(0)
        second = asyncio.create_task(statuses(connection, REQUEST))
        await asyncio.sleep(0)
        second.cancel()
        assert await first == [0]
        assert await statuses(connection, REQUEST) == [0]
        assert connection.calls == 0

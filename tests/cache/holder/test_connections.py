import asyncio
import socket
from types import SimpleNamespace

import pytest

from podferry.cache.holder import connections as module
from podferry.cache.holder.connections import Connections
from podferry.contract.cache_api import HEALTH_PATH, file_path
from tests.support.holder_site import running_holder
from tests.support.manual_clock import Clock

HEALTH = f"GET {HEALTH_PATH} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode()
PART = b"GET /v1/status HTTP/1.1\r\nHost: here\r\nX-Slow: "
CLOSED = ConnectionResetError, asyncio.IncompleteReadError


class Transport:
    """One that remembers that it was aborted."""

    aborted = False

    def abort(self):
        self.aborted = True


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def connections(clock):
    """At most three of them."""
    return Connections(3, clock)


def opened(connections, count=1):
    made = [Transport() for _ in range(count)]
    for one in made:
        connections.opened(one)
    return made


def aborted(transports):
    return [one.aborted for one in transports]


def test_of_too_many_the_one_that_waits_longest_is_closed(connections):
    first, second, third = opened(connections, 3)
    connections.answered(first)
    [fourth] = opened(connections)
    assert aborted([first, second, third, fourth]) == [False, True, False, False]
    connections.ended(third)
    opened(connections)
    assert aborted([first, fourth]) == [False, False]


def test_a_request_that_is_served_counts_and_is_not_closed(connections):
    busy = opened(connections, 3)
    for one in busy:
        connections.asked(one)
    [late] = opened(connections)
    assert aborted([*busy, late]) == [False, False, False, True]
    connections.answered(busy[0])
    opened(connections)
    assert aborted(busy) == [True, False, False]


def test_who_sends_no_request_in_time_is_closed(connections, clock):
    slow, served = opened(connections, 2)
    connections.asked(served)
    clock.now += module.WAIT_SECONDS - 1
    [quick] = opened(connections)
    clock.now += 2
    connections.sweep()
    assert aborted([slow, served, quick]) == [True, False, False]


def test_a_connection_that_has_ended_is_forgotten(connections, clock):
    [gone] = opened(connections)
    connections.asked(gone)
    connections.ended(gone)
    connections.answered(gone)  # its request ends later
    clock.now += 2 * module.WAIT_SECONDS
    connections.sweep()
    assert not gone.aborted


@pytest.mark.parametrize(("files", "most"), [(1024, 448), (1 << 20, module.MAX_CONNECTIONS), (64, 1)])
def test_as_many_as_there_are_files_to_open(files, most):
    assert module.most_connections(files) == most


async def connect(holder, data):
    host, port = holder.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    return SimpleNamespace(reader=reader, writer=writer)


async def is_healthy(holder):
    one = await connect(holder, HEALTH)
    answer = await one.reader.read()
    one.writer.close()
    return answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", [b"", PART])
async def test_connections_without_requests_keep_nobody_out(content, tmp_path, monkeypatch, sent):
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 5)
    async with running_holder(content.uri, tmp_path / "held") as (stage, holder):
        await stage.wait(20)
        held = [await connect(holder, sent) for _ in range(20)]
        assert await is_healthy(holder)
        for one in held[:15]:
            with pytest.raises(CLOSED):
                await one.reader.readexactly(1)
        assert not held[-1].reader.at_eof()
        for one in held:
            one.writer.transport.abort()


async def test_slow_requests_are_closed(content, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.01)
    async with running_holder(content.uri, tmp_path / "held") as (stage, holder):
        await stage.wait(20)
        slow = await connect(holder, PART)

        async def drip():
            while True:
                slow.writer.write(b"x")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        with pytest.raises(CLOSED):
            await slow.reader.readexactly(1)
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
        slow.writer.close()


async def test_a_reader_that_takes_nothing_of_its_file_is_given_up(content, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module, "STALL_SECONDS", 0.5)
    content.objects["d/large"] = bytes(32 * 1024**2)
    ended = asyncio.Event()
    monkeypatch.setattr(Connections, "ended", lambda self, transport: ended.set())
    async with running_holder(content.uri, tmp_path / "held") as (stage, holder):
        await stage.wait(20)
        path = file_path(stage.complete.digest, "large")
        host, port = holder.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as stalled:
            stalled.sendall(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
            await asyncio.wait_for(ended.wait(), 30)
    assert not caplog.records

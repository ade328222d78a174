"""Chunks for a thread: in order, some ahead, and every one given back, whoever stops."""

from __future__ import annotations

import asyncio

import pytest

from podferry.contract.errors import Changed
from podferry.sidecar.fetch.byte_stream import ByteStream
from podferry.sidecar.fetch.stream_feeder import StoppedError, feed

CHUNKS = [bytes([number]) * (number + 1) for number in range(10)]


class Site:
    """Counts what is fetched and given back."""

    def __init__(self, failing=None):
        self.fetched = self.given = 0
        self.source = ByteStream(self.give)
        self.failing = failing

    def give(self, count):
        self.given += count

    async def chunk(self, data):
        if data == self.failing:
            raise Changed.of("it has changed")
        await asyncio.sleep(0)
        self.fetched += len(data)
        return memoryview(data)

    async def run(self, work, ahead=3):
        reading = asyncio.get_running_loop().run_in_executor(None, work)
        return await feed(self.source, map(self.chunk, CHUNKS), reading, ahead)


async def test_chunks_come_in_order():
    site = Site()
    assert await site.run(site.source.read) == b"".join(CHUNKS)
    assert site.given == site.fetched == sum(map(len, CHUNKS))


@pytest.mark.parametrize("count", [0, 1, 2, 7])
async def test_what_nobody_reads_is_given_back(count):
    site = Site()

    def work():
        return b"".join(site.source.read(1) for _ in range(count))

    assert await site.run(work) == b"".join(CHUNKS)[:count]
    assert site.given == site.fetched


async def test_what_fails_in_a_chunk_fails_in_the_thread():
    site = Site(failing=CHUNKS[4])
    with pytest.raises(Changed):
        await site.run(site.source.read)
    assert site.given == site.fetched


async def test_a_thread_that_reads_on_is_told_that_nothing_more_comes():
    site = Site()

    async def never(data):
        await asyncio.Event().wait()

    site.chunk = never
    run = asyncio.create_task(site.run(site.source.read))
    await asyncio.sleep(0)
    run.cancel()
    with pytest.raises((asyncio.CancelledError, StoppedError)):
        await run

"""Chunks for a thread: in order, some prefetched, and every one freed in the end."""

from __future__ import annotations

import asyncio

import pytest

from podferry.contract.errors import Changed
from podferry.sidecar.fetch.byte_stream import ByteStream
from podferry.sidecar.fetch.stream_feeder import StoppedError, feed

CHUNKS = [bytes([number]) * (number + 1) for number in range(10)]


class Site:
    """Counts what is fetched and freed."""

    def __init__(self, failing=None):
        self.fetched = self.freed = 0
        self.stream = ByteStream(self.free)
        self.failing = failing

    def free(self, count):
        self.freed += count

    async def chunk(self, data):
        if data == self.failing:
            raise Changed.of("it has changed")
        await asyncio.sleep(0)
        self.fetched += len(data)
        return memoryview(data)

    async def run(self, work, depth=3):
        reader = asyncio.get_running_loop().run_in_executor(None, work)
        return await feed(self.stream, map(self.chunk, CHUNKS), reader, depth)


async def test_chunks_arrive_in_order():
    site = Site()
    assert await site.run(site.stream.read) == b"".join(CHUNKS)
    assert site.freed == site.fetched == sum(map(len, CHUNKS))


@pytest.mark.parametrize("count", [0, 1, 2, 7])
async def test_what_is_not_read_is_freed(count):
    site = Site()

    def work():
        return b"".join(site.stream.read(1) for _ in range(count))

    assert await site.run(work) == b"".join(CHUNKS)[:count]
    assert site.freed == site.fetched


async def test_an_error_of_a_chunk_is_raised_in_the_thread():
    site = Site(failing=CHUNKS[4])
    with pytest.raises(Changed):
        await site.run(site.stream.read)
    assert site.freed == site.fetched


async def test_a_bug_in_a_chunk_is_raised_as_it_is():
    site = Site()

    async def broken(data):
        raise OSError("not translated")

    def work():
        try:
            return site.stream.read()
        except OSError:
            return b"the archive is damaged"

    site.chunk = broken
    with pytest.raises(OSError, match="not translated"):
        await site.run(work)


async def test_a_thread_that_reads_on_is_stopped():
    site = Site()

    async def never(data):
        await asyncio.Event().wait()

    site.chunk = never
    run = asyncio.create_task(site.run(site.stream.read))
    await asyncio.sleep(0)
    run.cancel()
    with pytest.raises((asyncio.CancelledError, StoppedError)):
        await run

import asyncio

import pytest

from podferry.contract.errors import Changed
from podferry.sidecar.fetch.read_ahead import READ_AHEAD, read_ahead

DATA = bytes(range(256)) * 10


async def collect(read, size, step):
    loop = asyncio.get_running_loop()
    return await asyncio.to_thread(lambda: [bytes(part) for part in read_ahead(read, size, step, loop)])


@pytest.mark.parametrize(("size", "step"), [(0, 10), (1, 10), (10, 10), (11, 10), (2560, 700)])
async def test_ranges_come_in_order_and_few_are_in_flight(size, step):
    running = most = 0

    async def read(start, length):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return memoryview(DATA)[start : start + length]

    parts = await collect(read, size, step)
    assert b"".join(parts) == DATA[:size]
    assert all(len(part) == step for part in parts[:-1])
    assert most <= READ_AHEAD + 1


async def test_what_a_read_raises_reaches_the_reader():
    async def read(start, length):
        if start:
            raise Changed.of("other")
        return memoryview(DATA)[:length]

    with pytest.raises(Changed):
        await collect(read, 30, 10)

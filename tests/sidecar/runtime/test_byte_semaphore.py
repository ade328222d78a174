import asyncio

from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.runtime.byte_semaphore import ByteSemaphore
from tests.support.patience import PATIENCE


@given(st.lists(st.integers(0, 15), min_size=1, max_size=30), st.integers(1, 10), st.data())
def test_the_limit_is_never_exceeded_and_nothing_waits_forever(counts, limit, data):
    cancelled = data.draw(st.sets(st.sampled_from(range(len(counts)))))

    async def go():
        semaphore, now, order = ByteSemaphore(limit), 0, []

        async def one(index, count):
            nonlocal now
            await semaphore.acquire(count)
            now += min(count, limit)
            assert now <= limit
            order.append(index)
            await asyncio.sleep(0)
            now -= min(count, limit)
            semaphore.release(count)

        tasks = [asyncio.create_task(one(index, count)) for index, count in enumerate(counts)]
        for _ in range(data.draw(st.integers(0, 5))):
            await asyncio.sleep(0)
        for index in cancelled:
            if index not in order:  # what has begun is left to end: its bytes are in use
                tasks[index].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
        assert order == sorted(order)
        assert {*order} | cancelled == {*range(len(counts))}
        await asyncio.wait_for(semaphore.acquire(limit), PATIENCE)

    asyncio.run(go())

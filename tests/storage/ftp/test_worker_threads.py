import asyncio
import threading

import pytest

from podferry.storage.ftp.worker_threads import WorkerThreads
from tests.support.patience import PATIENCE


@pytest.fixture
def threads():
    made = WorkerThreads(3, "test")
    yield made
    made.close()


async def test_results_and_errors_reach_their_callers(threads):
    async def call(number):
        def work():
            if number % 7 == 0:
                raise ValueError(number)
            return number

        return await threads.run(work)

    found = await asyncio.gather(*(call(number) for number in range(500)), return_exceptions=True)
    assert [str(each) for each in found] == [str(number) for number in range(500)]
    assert {type(each) for each in found[::7]} == {ValueError}


async def test_calls_run_in_parallel_up_to_the_limit(threads):
    meeting = threading.Barrier(3)
    calls = (threads.run(lambda: meeting.wait(PATIENCE)) for _ in range(3))
    assert sorted(await asyncio.gather(*calls)) == [0, 1, 2]


async def test_a_cancelled_call_does_not_disturb_others(threads):
    begun, finish = threading.Event(), threading.Event()

    def work():
        begun.set()
        assert finish.wait(PATIENCE)

    cancelled = asyncio.create_task(threads.run(work))
    await asyncio.to_thread(begun.wait, PATIENCE)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    finish.set()
    assert await threads.run(lambda: "other") == "other"


async def test_closed_threads_end():
    before = threading.active_count()
    threads = WorkerThreads(2, "ending")
    await asyncio.gather(*(threads.run(lambda: None) for _ in range(10)))
    threads.close()
    names = [thread for thread in threading.enumerate() if thread.name.startswith("ending")]
    await asyncio.to_thread(lambda: [thread.join(PATIENCE) for thread in names])
    assert threading.active_count() <= before + 1  # the one of `to_thread`

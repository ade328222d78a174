import asyncio
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.upload.rate_limiter import RateLimiter
from tests.support.manual_clock import Clock


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 500)), max_size=40), st.integers(1, 300))
def test_no_window_sees_more_than_the_rate_and_one_transfer(takes, rate):
    clock = Clock()
    throttle, turns = RateLimiter(rate, clock), []
    for pause, count in takes:
        clock.now += pause
        turns.append((clock.now + throttle.reserve(count), count))
    largest = max((count for _, count in takes), default=0)
    for first, (begin, _) in enumerate(turns):
        for last in range(first, len(turns)):
            moved = sum(count for _, count in turns[first : last + 1])
            assert moved <= rate * (turns[last][0] - begin) + largest + 1e-6 * (1 + moved)


async def test_one_transfer_starts_at_once_and_the_next_when_it_is_paid_for(clock):
    throttle = RateLimiter(100, clock, clock.sleep)
    await throttle.take(1000)
    assert clock.now == 1000.0
    await throttle.take(50)
    assert clock.now == 1010.0
    await throttle.take(1)
    assert clock.now == 1010.5


async def test_a_cancelled_wait_costs_the_others_nothing():
    throttle = RateLimiter(1000, time.monotonic)
    await throttle.take(50)
    given_up = [asyncio.create_task(throttle.take(1 << 30)) for _ in range(3)]
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    await asyncio.gather(*given_up, return_exceptions=True)
    assert throttle.reserve(1) <= 0.05


async def test_time_that_was_not_used_is_not_saved_up(clock):
    throttle = RateLimiter(100, clock, clock.sleep)
    clock.now += 3600
    for _ in range(3):
        await throttle.take(100)
    assert clock.now == 1000 + 3600 + 2


async def test_without_a_rate_nothing_waits(clock):
    throttle = RateLimiter(None, clock, clock.sleep)
    for _ in range(3):
        await throttle.take(1 << 40)
    assert clock.now == 1000.0

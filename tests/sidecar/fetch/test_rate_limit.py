import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.fetch.rate_limit import MIN_SHARE, RateLimit

RATE = 4 * MIN_SHARE


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return self.seconds

    async def sleep(self, seconds):
        self.seconds += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def limit(clock):
    return RateLimit(RATE, clock.now, clock.sleep)


async def test_the_first_bytes_do_not_wait(limit, clock):
    await limit.take(100 * RATE)
    assert clock.seconds == 0


async def test_bytes_wait_for_the_time_of_those_before(limit, clock):
    await limit.take(RATE)
    await limit.take(2 * RATE)
    assert clock.seconds == 1
    await limit.take(1)
    assert clock.seconds == 3


async def test_time_without_requests_is_not_saved_up(limit, clock):
    await limit.take(RATE)
    clock.seconds = 100.0
    await limit.take(RATE)
    await limit.take(RATE)
    assert clock.seconds == 101


async def test_each_that_shares_it_takes_an_equal_part(limit, clock):
    limit.sharers = 4
    await limit.take(RATE)
    await limit.take(1)
    assert clock.seconds == 4


async def test_a_share_never_looks_like_a_stall(limit):
    limit.sharers = 1000
    assert limit.share == MIN_SHARE


@given(st.lists(st.tuples(st.integers(0, 3 * RATE), st.floats(0, 2)), min_size=1, max_size=30))
async def test_no_sequence_exceeds_the_rate(steps):
    clock = Clock()
    limit = RateLimit(RATE, clock.now, clock.sleep)
    taken = 0
    for count, pause in steps:
        clock.seconds += pause
        await limit.take(count)
        assert taken <= RATE * clock.seconds * (1 + 1e-9)
        taken += count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.http.concurrency import (
    CALM,
    INITIAL_CONNECTIONS,
    LONG_CALM,
    PATIENCE,
    ConcurrencyController,
    Sample,
)

MOST = 400


def looks(pace, rate, cpu_of, count=40, seconds=0.03):
    """What a pace comes to where `rate` tells the jobs a second of so many connections."""
    for _ in range(count):
        jobs = rate(pace.connections) * seconds
        pace.look(Sample(seconds, min(cpu_of(jobs), seconds), int(jobs * 30_000), int(jobs)))
    return pace.connections


def test_a_near_server_needs_few():
    assert (
        looks(ConcurrencyController(MOST), lambda count: 15_000, lambda jobs: jobs * 70e-6)
        == INITIAL_CONNECTIONS
    )


@pytest.mark.parametrize("latency", [0.02, 0.1])
def test_a_distant_one_gets_as_many_as_keep_a_core_busy(latency):
    cost = 70e-6
    found = looks(
        ConcurrencyController(2000), lambda count: min(count / latency, 0.95 / cost), lambda jobs: jobs * cost
    )
    assert 0.7 * latency / cost <= found <= 1.7 * latency / cost


def test_what_brings_no_more_bytes_is_taken_back():
    """The link is full with 20: more of them only queue there."""
    found = looks(ConcurrencyController(MOST), lambda count: 50 * min(count, 20), lambda jobs: jobs * 70e-6)
    assert found <= 8 * 20


def test_a_gain_that_comes_late_is_waited_for():
    pace = ConcurrencyController(MOST)
    pace.look(Sample(0.03, 0.003, 10_000, 1))
    assert pace.connections == INITIAL_CONNECTIONS, "the first look is of connecting"
    pace.look(Sample(0.03, 0.003, 80_000, 8))
    grown = pace.connections
    assert grown > INITIAL_CONNECTIONS
    for _ in range(PATIENCE - 1):
        pace.look(Sample(0.03, 0.003, 80_000, 8))
    assert pace.connections == grown
    pace.look(Sample(0.03, 0.003, 800_000, 80))
    assert pace.connections == grown


def test_a_server_that_asks_for_less_gets_less_for_long():
    pace = ConcurrencyController(MOST, first=64)
    assert pace.slow_down() == 32
    assert looks(pace, lambda count: count / 0.02, lambda jobs: jobs * 70e-6, LONG_CALM) == 32
    assert looks(pace, lambda count: count / 0.02, lambda jobs: jobs * 70e-6) > 32, "then it is tried again"


def test_what_one_burst_made_look_useless_is_tried_again():
    pace = ConcurrencyController(MOST)
    for jobs in (1, 800, *[80] * PATIENCE):
        pace.look(Sample(0.03, 0.003, 10_000 * jobs, jobs))
    assert pace.connections == INITIAL_CONNECTIONS
    assert (
        looks(pace, lambda count: count / 0.02, lambda jobs: jobs * 70e-6, CALM // 2) == INITIAL_CONNECTIONS
    )
    assert looks(pace, lambda count: count / 0.02, lambda jobs: jobs * 70e-6, CALM) > INITIAL_CONNECTIONS


@given(
    most=st.integers(1, 600),
    seen=st.lists(
        st.tuples(
            st.floats(0, 10), st.floats(0, 10), st.integers(0, 1 << 40), st.integers(0, 10**6), st.booleans()
        )
    ),
)
def test_there_is_always_one_and_never_too_many(most, seen):
    pace = ConcurrencyController(most)
    for seconds, cpu, count, jobs, slow in seen:
        pace.look(Sample(seconds, cpu, count, jobs))
        if slow:
            pace.slow_down()
        assert 1 <= pace.connections <= most

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.http.concurrency import (
    HOLD_SAMPLES,
    INITIAL_CONNECTIONS,
    RATE_LIMITED_HOLD_SAMPLES,
    TRIAL_SAMPLES,
    ConcurrencyController,
    Sample,
)

MAX_CONNECTIONS = 400


def settled(controller, rate, cpu_of, count=40, seconds=0.03):
    """The target after some samples; `rate` maps connections to jobs per second."""
    for _ in range(count):
        jobs = rate(controller.connections) * seconds
        controller.update(Sample(seconds, min(cpu_of(jobs), seconds), int(jobs * 30_000), int(jobs)))
    return controller.connections


def test_a_near_server_needs_few():
    assert (
        settled(ConcurrencyController(MAX_CONNECTIONS), lambda count: 15_000, lambda jobs: jobs * 70e-6)
        == INITIAL_CONNECTIONS
    )


@pytest.mark.parametrize("latency", [0.02, 0.1])
def test_a_distant_one_gets_as_many_as_keep_a_core_busy(latency):
    cost = 70e-6
    found = settled(
        ConcurrencyController(2000), lambda count: min(count / latency, 0.95 / cost), lambda jobs: jobs * cost
    )
    assert 0.7 * latency / cost <= found <= 1.7 * latency / cost


def test_connections_that_gain_nothing_are_closed():
    """20 connections saturate the link: more only queue."""
    found = settled(
        ConcurrencyController(MAX_CONNECTIONS), lambda count: 50 * min(count, 20), lambda jobs: jobs * 70e-6
    )
    assert found <= 8 * 20


def test_a_late_gain_is_waited_for():
    controller = ConcurrencyController(MAX_CONNECTIONS)
    controller.update(Sample(0.03, 0.003, 10_000, 1))
    assert controller.connections == INITIAL_CONNECTIONS, "the first sample is of connecting"
    controller.update(Sample(0.03, 0.003, 80_000, 8))
    grown = controller.connections
    assert grown > INITIAL_CONNECTIONS
    for _ in range(TRIAL_SAMPLES - 1):
        controller.update(Sample(0.03, 0.003, 80_000, 8))
    assert controller.connections == grown
    controller.update(Sample(0.03, 0.003, 800_000, 80))
    assert controller.connections == grown


def test_a_rate_limiting_server_gets_fewer_connections_for_long():
    controller = ConcurrencyController(MAX_CONNECTIONS, initial=64)
    controller.slow_down()
    assert controller.connections == 32
    assert (
        settled(controller, lambda count: count / 0.02, lambda jobs: jobs * 70e-6, RATE_LIMITED_HOLD_SAMPLES)
        == 32
    )
    assert settled(controller, lambda count: count / 0.02, lambda jobs: jobs * 70e-6) > 32, (
        "then growth is tried again"
    )


def after_a_useless_trial(rates):
    """A controller that has undone its growth: rates in MB/s, the first of connecting."""
    controller = ConcurrencyController(MAX_CONNECTIONS)
    for rate in rates:
        controller.update(Sample(0.03, 0.012, int(rate * 30_000), 0))
    assert controller.connections == INITIAL_CONNECTIONS
    return controller


def test_growth_that_gained_nothing_is_tried_again():
    controller = after_a_useless_trial([150, 800, *[800] * TRIAL_SAMPLES])
    steady = {"rate": lambda count: count * 3333, "cpu_of": lambda jobs: jobs * 1e-5}  # 800 MB/s with 8
    assert settled(controller, **steady, count=HOLD_SAMPLES // 2) == INITIAL_CONNECTIONS
    assert settled(controller, **steady, count=HOLD_SAMPLES) > INITIAL_CONNECTIONS


def test_growth_that_a_burst_made_look_useless_is_tried_again_at_once():
    """As seen from a server that limits each connection: its first bytes come faster."""
    controller = after_a_useless_trial([154, 831, 735, 781, 724])
    for rate in (748, 646, 575):
        controller.update(Sample(0.03, 0.012, rate * 30_000, 0))
    assert controller.connections > INITIAL_CONNECTIONS


def test_a_server_that_asked_for_less_is_not_taken_for_a_burst():
    controller = after_a_useless_trial([150, 800, *[700] * TRIAL_SAMPLES])
    controller.slow_down()
    for _ in range(3 * TRIAL_SAMPLES):
        controller.update(Sample(0.03, 0.003, 100 * 30_000, 0))
    assert controller.connections == INITIAL_CONNECTIONS // 2


@given(
    limit=st.integers(1, 600),
    samples=st.lists(
        st.tuples(
            st.floats(0, 10), st.floats(0, 10), st.integers(0, 1 << 40), st.integers(0, 10**6), st.booleans()
        )
    ),
)
def test_there_is_always_one_and_never_too_many(limit, samples):
    controller = ConcurrencyController(limit)
    for seconds, cpu, count, jobs, slow in samples:
        controller.update(Sample(seconds, cpu, count, jobs))
        if slow:
            controller.slow_down()
        assert 1 <= controller.connections <= limit

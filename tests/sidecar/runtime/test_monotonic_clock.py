from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.runtime.monotonic_clock import MonotonicClock

TIMES = st.floats(0, 4e9)


@given(st.lists(TIMES, min_size=1), TIMES)
def test_every_reading_is_later_than_the_one_before(times, after):
    shown = iter(times)
    clock = MonotonicClock(lambda: next(shown), after)
    readings = [clock() for _ in times]
    assert all(later > earlier for earlier, later in zip([after, *readings], readings, strict=False))
    assert all(reading >= time for reading, time in zip(readings, times, strict=True))


def test_the_machines_clock_is_followed_while_it_moves_forward():
    shown = iter([10.0, 20.0, 5.0, 30.0])
    clock = MonotonicClock(lambda: next(shown))
    assert [clock(), clock()] == [10.0, 20.0]
    assert 20.0 < clock() < 20.001
    assert clock() == 30.0

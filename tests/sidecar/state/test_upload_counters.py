from __future__ import annotations

import pytest

from podferry.sidecar.state.upload_counters import UploadCounters


class Clock:
    """A clock that advances only while a task sleeps, or by `now`."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


def test_the_rate_is_that_of_the_last_upload(clock):
    meter = UploadCounters(clock=clock)
    meter.begin()
    meter.add(100)
    assert (meter.sent, meter.rate) == (100, 0.0)
    clock.now += 2
    meter.add(100)
    assert (meter.sent, meter.rate) == (200, 100.0)
    meter.begin()
    clock.now += 1
    meter.add(5)
    assert (meter.sent, meter.rate) == (205, 5.0)

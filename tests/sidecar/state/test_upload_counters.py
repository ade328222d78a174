from __future__ import annotations

from podferry.sidecar.state.upload_counters import UploadCounters


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

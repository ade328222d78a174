from __future__ import annotations

import pytest

from podferry.sidecar.state.durations import DURABLE_BUCKETS, Durations


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, 0), (0.5, 0), (0.51, 1), (600.0, len(DURABLE_BUCKETS) - 1), (601.0, -1)]
)
def test_a_time_counts_in_the_first_bucket_that_contains_it(seconds, bucket):
    durations = Durations()
    durations.observe(seconds)
    assert durations.counts[bucket] == sum(durations.counts) == 1


def test_times_add_up():
    durations = Durations()
    for seconds in (1.0, 2.5, 900.0):
        durations.observe(seconds)
    assert (sum(durations.counts), durations.total_seconds) == (3, 903.5)

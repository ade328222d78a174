import os

import pytest
from review_load import cpu_seconds, percentile


@pytest.mark.parametrize(("share", "value"), [(0.5, 51), (0.99, 100), (1.0, 100), (0.0, 1)])
def test_percentiles(share: float, value: int) -> None:
    assert percentile(range(1, 101), share) == value


def test_the_cpu_time_of_a_process() -> None:
    before = cpu_seconds(os.getpid())
    while cpu_seconds(os.getpid()) == before:
        sum(range(1000))
    assert cpu_seconds(os.getpid()) - before < 5

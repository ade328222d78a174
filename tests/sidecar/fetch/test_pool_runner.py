import pytest

from podferry.sidecar.fetch.pool_runner import worker_count


@pytest.mark.parametrize(
    ("jobs", "count", "max_processes", "expected"),
    [(10, 1000, None, 0), (10_000, 10**8, 1, 0), (10_000, 10**9, 3, 2), (100, 10**10, 2, 1), (10, 10, 4, 0)],
)
def test_only_large_plans_get_worker_processes(jobs, count, max_processes, expected):
    assert worker_count(jobs, count, max_processes) == expected

"""Jobs in groups that several processes take from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.fetch.shared_jobs import SharedJobs


def shared(*groups: Sequence[str]) -> SharedJobs[str]:
    return SharedJobs(iter([iter(group) for group in groups]))


def test_each_taker_has_a_file_of_its_own() -> None:
    jobs = shared(["a1", "a2"], ["b1", "b2"], ["c1"])
    one, other = jobs.take(), jobs.take()
    assert [next(one), next(other), next(one), next(other)] == ["a1", "b1", "a2", "b2"]


def test_who_has_no_file_left_helps_with_another() -> None:
    jobs = shared(["a1", "a2", "a3", "a4"], ["b1"])
    one, other = jobs.take(), jobs.take()
    assert [next(one), next(other), next(other), next(one), next(other)] == ["a1", "b1", "a2", "a3", "a4"]
    assert [*one, *other] == []


def test_the_rest_of_a_taker_that_gives_up_is_left_to_the_others() -> None:
    jobs = shared(["a1", "a2", "a3"], ["b1"])
    one = jobs.take()
    assert next(one) == "a1"
    del one
    assert list(jobs.take()) == ["b1", "a2", "a3"]


@given(st.lists(st.integers(0, 4), max_size=6), st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5))))
def test_each_job_is_taken_once_in_the_order_of_its_group(
    sizes: list[int], turns: list[tuple[int, int]]
) -> None:
    groups = [[(group, number) for number in range(size)] for group, size in enumerate(sizes)]
    jobs = SharedJobs(iter([iter(group) for group in groups]))
    takers = [jobs.take() for _ in range(3)]
    taken = [job for taker, count in turns for job in islice(takers[taker], count)]
    taken += jobs.take()
    assert sorted(taken) == sorted(job for group in groups for job in group)
    assert all([job for job in taken if job[0] == number] == group for number, group in enumerate(groups))

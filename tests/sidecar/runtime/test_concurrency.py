from __future__ import annotations

import asyncio

import pytest

from podferry.contract.errors import FerryError, Refused, TemporaryError, Unavailable
from podferry.sidecar.runtime.concurrency import for_each_limited, gather_all, merge_errors


async def test_the_first_failure_cancels_the_others_and_keeps_its_cause():
    cancelled = []
    failure = Unavailable.of("no route")
    cause = failure.__cause__ = OSError("by peer")

    async def forever():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def fail():
        await asyncio.sleep(0)
        raise failure

    with pytest.raises(Unavailable) as caught:
        await gather_all([forever(), fail(), forever()])
    assert caught.value is failure
    assert caught.value.__cause__ is cause
    assert cancelled == [True, True]


@pytest.mark.parametrize(("count", "limit", "most"), [(10, 3, 3), (2, 5, 2), (0, 5, 0)])
async def test_no_more_items_are_in_work_than_the_limit(count, limit, most):
    running, peak, done = 0, 0, []

    async def work(item):
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0)
        running -= 1
        done.append(item)

    await for_each_limited(range(count), work, limit)
    assert sorted(done) == list(range(count))
    assert peak == most


async def test_after_a_failure_no_further_item_is_begun():
    begun = []

    async def work(item):
        begun.append(item)
        await asyncio.sleep(0)
        raise Refused.of("no")

    with pytest.raises(Refused):
        await for_each_limited(range(100), work, 2)
    assert begun == [0, 1]


def test_one_error_is_returned_as_it_is():
    error = Unavailable.of("a")
    assert merge_errors([None, error, 3]) is error
    assert merge_errors([None, 3]) is None


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([Unavailable.of("a"), Unavailable.of("b")], TemporaryError),
        ([Unavailable.of("a"), Refused.of("b")], Refused),
    ],
)
def test_several_errors_become_one_with_all_problems(errors: list[FerryError], kind):
    merged = merge_errors(errors)
    assert type(merged) is kind
    assert [problem.what for problem in merged.problems] == ["a", "b"]


def test_an_unexpected_exception_is_raised():
    with pytest.raises(ZeroDivisionError):
        merge_errors([Refused.of("a"), ZeroDivisionError()])


async def test_a_failure_leaves_no_cancellation_counted():
    """Python 3.11.2 takes the end of a later `asyncio.timeout` for a cancellation from outside."""

    async def fail():
        await asyncio.sleep(0)
        raise Unavailable.of("no")

    with pytest.raises(Unavailable):
        await gather_all([fail(), asyncio.sleep(10)])
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0

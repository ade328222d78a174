from __future__ import annotations

import pytest

from podferry.contract.errors import Refused, Unavailable
from podferry.sidecar.runtime.retry import retry


def failing(times, error):
    """An operation that fails `times` times and then returns how often it was called."""
    calls = []

    async def operation():
        calls.append(None)
        if len(calls) <= times:
            raise error
        return len(calls)

    return operation, calls


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_a_temporary_failure_is_retried(failures):
    operation, _ = failing(failures, Unavailable.of("no route"))
    assert await retry(3, operation) == failures + 1


async def test_patience_replaces_the_number_of_attempts():
    operation, calls = failing(2, Unavailable.of("no route"))
    assert await retry(1, operation, patience=60.0) == 3
    operation, calls = failing(99, Unavailable.of("no route"))
    with pytest.raises(Unavailable):
        await retry(99, operation, patience=0.001)
    assert len(calls) < 9


@pytest.mark.usefixtures("quick_retries")
async def test_the_last_failure_is_raised():
    failure = Unavailable.of("no route")
    operation, calls = failing(99, failure)
    with pytest.raises(Unavailable) as caught:
        await retry(2, operation)
    assert caught.value is failure
    assert len(calls) == 2, "attempts include the first"


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("error", [Refused.of("no"), ZeroDivisionError()])
async def test_other_failures_are_raised_at_once(error):
    operation, calls = failing(99, error)
    with pytest.raises(type(error)):
        await retry(3, operation)
    assert len(calls) < 9

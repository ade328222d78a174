import subprocess
import sys

import pytest

from podferry.contract.errors import Changed, Unavailable
from podferry.storage import retries
from podferry.storage.retries import CHANGED_ATTEMPTS, pauses, retry_changed, retry_temporary


def failing(times):
    """An operation that fails as often, and its calls."""
    calls = []

    async def operation():
        calls.append(None)
        if len(calls) <= times:
            raise Unavailable.of("no route")
        return len(calls)

    return operation, calls


@pytest.mark.usefixtures("quick_retries")
async def test_logs_are_prepared_once_before_the_first_retry(monkeypatch):
    prepared = []
    monkeypatch.setattr(retries, "prepare_logs", [lambda: prepared.append(None)])
    assert await retry_temporary(failing(0)[0], 3, None) == 1
    assert prepared == []
    assert await retry_temporary(failing(2)[0], 3, None) == 3
    assert prepared == [None]


@pytest.mark.usefixtures("quick_retries")
async def test_attempts_and_seconds_both_end_it():
    for attempts, seconds, most in ((2, 60.0, 2), (99, 0.001, 9)):
        operation, calls = failing(99)
        with pytest.raises(Unavailable):
            await retry_temporary(operation, attempts, seconds)
        assert len(calls) <= most


def test_what_succeeds_does_not_load_stamina():
    program = """
import asyncio, sys
from podferry.storage.retries import retry_temporary
async def one(): return 1
assert asyncio.run(retry_temporary(one, 3, None)) == 1
assert "stamina" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("retries", "seconds", "expected"),
    [(3, 60, [0.2, 0.4, 0.8]), (9, 0.5, [0.2, 0.4]), (0, 60, []), (3, 0, [])],
)
def test_pauses_double_within_retries_and_time(retries, seconds, expected):
    assert list(pauses(retries, seconds)) == expected


@pytest.mark.parametrize(("attempts", "seconds"), [(1, None), (1, 5.0), (3, 0.0), (None, 0)])
async def test_one_attempt_may_be_all(attempts, seconds):
    calls = []

    async def fail():
        calls.append(1)
        raise Unavailable.of("gone")

    with pytest.raises(Unavailable, match="gone"):
        await retry_temporary(fail, attempts, seconds)
    assert len(calls) == 1


async def test_who_names_no_version_takes_the_next_one():
    def read_of(times):
        operation, calls = failing(times)

        async def read():
            try:
                return await operation()
            except Unavailable as error:
                raise Changed.of("it was replaced") from error

        return read, calls

    assert await retry_changed(read_of(CHANGED_ATTEMPTS - 1)[0], "", None) == CHANGED_ATTEMPTS
    for tag, size, attempts in (("", None, CHANGED_ATTEMPTS), ("tag", None, 1), ("", 0, 1)):
        read, calls = read_of(99)
        with pytest.raises(Changed):
            await retry_changed(read, tag, size)
        assert len(calls) == attempts

import pytest

from podferry.contract.errors import Unavailable
from podferry.storage.credentials import refresh
from podferry.storage.credentials.refresh import REFRESH_SECONDS, RefreshedValue


@pytest.fixture
def clock(monkeypatch):
    """The time, as a list of one number."""
    now = [1000.0]
    monkeypatch.setattr(refresh.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(("lasting", "expected"), [(False, 2), (True, 1)])
async def test_a_value_is_read_again_when_it_is_due_unless_it_lasts(clock, lasting, expected):
    read = []
    value = RefreshedValue(lambda: read.append(1) or len(read), lasting)
    assert value.value is None
    await value.refresh()
    clock[0] += REFRESH_SECONDS - 1
    await value.refresh()
    assert (value.value, len(read)) == (1, 1)
    clock[0] += 1
    await value.refresh()
    assert value.value == expected


async def test_the_last_value_remains_if_reading_fails(clock):
    answers = [Unavailable.of("not yet"), "first", Unavailable.of("down"), "second"]

    def read():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    value, found = RefreshedValue(read), []
    with pytest.raises(Unavailable):
        await value.refresh()
    for _ in range(3):
        await value.refresh()
        found.append(value.value)
        clock[0] += REFRESH_SECONDS
    assert found == ["first", "first", "second"]

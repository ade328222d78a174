import pytest

from podferry.cache.holder import token_budget
from podferry.cache.holder.token_budget import MAX_UNKNOWN, WINDOW_SECONDS, TokenBudget
from tests.support.manual_clock import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def budget(clock):
    return TokenBudget(clock)


def test_an_address_has_so_many_tokens_in_a_while(budget, clock):
    assert all(budget.spend("a") for _ in range(MAX_UNKNOWN))
    assert not budget.spend("a")
    assert budget.spend("b")
    clock.now += WINDOW_SECONDS - 1
    assert not budget.spend("a")
    clock.now += 1
    assert budget.spend("a")


def test_valid_tokens_are_not_counted(budget):
    for _ in range(3 * MAX_UNKNOWN):
        assert budget.spend("a")
        budget.give_back("a")
    budget.give_back("unknown")


def test_addresses_are_bounded(budget, monkeypatch):
    monkeypatch.setattr(token_budget, "MAX_ADDRESSES", 5)
    for number in range(20):
        budget.spend(str(number))
    assert len(budget._spent) == 5

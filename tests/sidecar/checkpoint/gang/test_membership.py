from datetime import UTC, datetime

import pytest

from podferry.contract.destination.rank_parts import GangMember, MembershipView
from podferry.sidecar.checkpoint.gang.membership import epoch_at, takes_over


@pytest.mark.parametrize(
    ("before", "other", "expected"),
    [
        (("0-me",), "a", True),
        (("0.3-me",), "a", True),
        (("1-me",), "a", False),
        ((), "z", True),
        ((), "a", False),
    ],
)
def test_who_takes_over(before, other, expected):
    rival = GangMember(1, other, datetime.now(UTC), 0, before)
    assert takes_over(rival, other, 0, "me") is expected


def test_the_epoch_observed_at_a_time():
    views = [
        MembershipView(10, "a"),
        MembershipView(20, "b"),
        MembershipView(5, "c"),
        MembershipView(30, "d"),
    ]
    assert [epoch_at(views, time) for time in (9, 10, 19, 25, 40)] == ["", "a", "a", "c", "d"]
    assert epoch_at([], 99) == ""

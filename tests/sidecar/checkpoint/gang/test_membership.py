from datetime import UTC, datetime

import pytest

from podferry.contract.destination.rank_parts import GangMember, MembershipView
from podferry.contract.errors import Fenced
from podferry.sidecar.checkpoint.gang.membership import epoch_at, takes_over
from tests.support.gang_site import join, joined_gang, publish


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


async def test_observed_epochs_survive_a_restart_of_the_worker(site):
    await joined_gang(site)
    written = site.time
    site.time += 10
    again = await join(site, 1, "w1-again")
    site.time += 10
    await publish(site, again, 100, "b2")
    restarted = await join(site, 0)
    await publish(site, restarted, 100, "a1", when=written)
    for gang in (restarted, again):
        assert (await gang.commit_complete())[0] == []


async def test_the_later_agent_of_a_rank_fences_the_earlier_one(site):
    old, two = await joined_gang(site)
    new = await join(site, 0, "a-new-one")
    for act in (
        old.membership.refresh,
        old.commit_complete,
        lambda: publish(site, old, 100, "a"),
        old.membership.refresh,
    ):
        with pytest.raises(Fenced, match="a-new-one has taken part since"):
            await act()
    for gang in (new, two, await join(site, 0, "a-new-one")):
        await gang.membership.refresh()
    with pytest.raises(Fenced):
        await join(site, 0)


async def test_a_new_name_does_not_make_an_agent_later(site):
    old, _ = await joined_gang(site)
    new = await join(site, 0, "a-new-one")
    await old.membership._begin(2, old.membership.own.before)
    await new.membership.refresh()

from __future__ import annotations

import asyncio

import pytest

from podferry.contract.errors import Unavailable
from podferry.storage.memory.store import Fault
from tests.support.gang_site import LOST, commits, committer, file, join, joined_gang, publish, steps


async def test_ranks_that_commit_at_once_make_one_commit(site):
    gangs = await joined_gang(site, world=4)
    for gang in gangs:
        await publish(site, gang, 100, "a", ("shared", "s"), ("config", str(gang._rank)))
    found = await asyncio.gather(*(gang.commit_complete() for gang in gangs))
    assert len(commits(site)) == 1
    assert all(result == (commits(site), []) for result in found)
    named = [(f.name, f.rank) for f in commits(site)[0].files if not f.name.startswith("rank")]
    assert named == [*(("config", rank) for rank in range(4)), ("shared", None)]


async def test_a_lost_answer_makes_one_commit(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    await publish(site, two, 100, "b")
    site.content.faults.append(Fault("write", "*/commits/*", error=LOST, after=True))
    site.content.faults.append(Fault("write", "*/commits/*", times=9, error=LOST))
    with pytest.raises(Unavailable):
        await one.commit_complete()
    assert (
        len((await two.commit_complete())[0])
        == len((await one.commit_complete())[0])
        == len(commits(site))
        == 1
    )


async def test_parts_are_joined_only_in_their_own_epoch(site, monkeypatch):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    await publish(site, two, 100, "b")
    read = one._parts.of

    async def then_a_pod_starts(name):
        found = await read(name)
        await join(site, 1, "w1-again")
        return found

    monkeypatch.setattr(one._parts, "of", then_a_pod_starts)
    assert (await one.commit_complete())[0] == []
    assert commits(site) == []


async def test_files_added_after_the_commit_come_too_late(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    await publish(site, two, 100, "b")
    await one.commit_complete()
    await publish(site, one, 100, "a", ("late", "l"))
    await publish(site, two, 100, "b")
    found, problems = await one.commit_complete()
    assert (found, problems[0].measured) == ([], "step-100 is already durable, with other files")
    assert len(commits(site)) == 1


async def test_a_worker_that_restarts_finds_what_is_durable(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    await publish(site, two, 100, "b")
    await two.commit_complete()
    for gang in (one, two):
        await publish(site, gang, 110, "c")
    await two.commit_complete()
    restarted = await join(site, 0)
    await publish(site, restarted, 100, "a", when=site.time)
    assert [commit.step for commit in (await restarted.commit_complete())[0]] == [100]
    assert steps(site) == [100, 110]


async def test_a_commit_that_arrives_late_is_not_followed_by_older_steps(site):
    await joined_gang(site)
    again = [await join(site, rank, f"again-{rank}") for rank in range(2)]
    for gang in again:
        await gang.membership.refresh()
    site.time += 10
    late = committer(site, 0, "w0")
    await late.commit("step-100", "step-100-ab", (file("w", "w", "late"),))
    for gang in again:
        await publish(site, gang, 60, "c")
    assert [(await gang.commit_complete())[0] for gang in again] == [[], []]
    for gang in again:
        await publish(site, gang, 110, "c")
    await again[0].commit_complete()
    assert steps(site) == [100, 110]

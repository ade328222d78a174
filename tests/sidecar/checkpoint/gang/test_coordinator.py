import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import msgspec
import pytest

from podferry.contract.destination.commit import CommittedFile, decode_commit
from podferry.contract.errors import Changed, Fenced, Refused, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.storage.memory.store import Content, Fault, MemoryStore

LOST = Unavailable.of("the connection was reset")
BEFORE = 500.0
"""A time before any agent has seen an epoch."""


def file(name, content, folder):
    return CommittedFile(name, f"{folder}/{name}", len(content), content.ljust(32, "0"))


@pytest.fixture
def site(quick_retries):
    """A lineage whose clock moves only if a test moves it."""
    content = Content()
    store = MemoryStore(parse_uri("memory://gang"), content)
    return SimpleNamespace(content=content, store=store, time=1000.0)


def committer(site, rank, writer, world=2):
    reader = CommitReader(LineageStore(site.store, "run"))
    identity = AgentIdentity(writer, world, rank=rank)
    return Committer(reader, identity, lambda: datetime.fromtimestamp(site.time, UTC), 2)


def quiet(site, rank, writer=None, world=2):
    """An agent that has not announced itself."""
    return GangCoordinator(committer(site, rank, writer or f"w{rank}", world), lambda: site.time)


async def join(site, rank, writer=None, world=2):
    gang = quiet(site, rank, writer, world)
    await gang.announce()
    return gang


async def joined_gang(site, world=2):
    """Agents that have all seen each other, some time ago."""
    gangs = [await join(site, rank, world=world) for rank in range(world)]
    for gang in gangs:
        await gang.membership.refresh()
    site.time += 10
    return gangs


async def publish(site, gang, step, content, *more, when=None):
    """Publish a rank's part: a file of its own and more, in its own folder unless they name one."""
    folder = f"own-{gang._rank}"
    held = [file(*one, folder) if isinstance(one, tuple) else one for one in more]
    files = (file(f"rank-{gang._rank}", content, folder), *held)
    await gang.publish(f"step-{step}", folder, files, site.time if when is None else when)


def commits(site):
    keys = sorted(key for key in site.content.objects if "/commits/" in key)
    return [decode_commit(site.content.objects[key], key) for key in keys]


def steps(site):
    return [commit.step for commit in commits(site)]


def parts(site):
    return sorted(key for key in site.content.objects if "/parts/" in key)


async def test_a_step_is_committed_once_all_parts_exist(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    found, problems = await one.commit_complete()
    assert (found, commits(site)) == ([], [])
    assert problems[0].what == "step-100 waits for rank 1 of 2"
    await publish(site, two, 100, "b")
    found, problems = await two.commit_complete()
    assert (found, problems) == (commits(site), [])
    assert await one.commit_complete() == (found, [])
    assert await one.commit_complete() == ([], [])
    assert [(f.name, f.object, f.rank) for f in found[0].files] == [
        ("rank-0", "own-0/rank-0", None),
        ("rank-1", "own-1/rank-1", None),
    ]
    assert (found[0].world, found[0].step, found[0].rank) == (2, 100, 1)
    assert parts(site) == []


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


async def test_a_name_without_a_step_is_refused(site):
    one, _ = await joined_gang(site)
    with pytest.raises(Refused, match="several pods write together need a step"):
        await one.publish("last", "own-0", (file("last", "a", "own-0"),), site.time)
    assert parts(site) == []


async def test_a_newer_step_abandons_older_ones_by_name(site):
    one, two = await joined_gang(site)
    await publish(site, one, 90, "a")
    await publish(site, one, 100, "a")
    await publish(site, two, 100, "b")
    await one.commit_complete()
    assert [one.is_abandoned(name) for name in ("step-90", "step-110", "best-3")] == [True, False, False]
    _, problems = await one.commit_complete()
    assert [(p.what, p.measured) for p in problems] == [
        ("step-90 was given up", "step-100 is already durable; it lacked rank 1 of 2")
    ]
    await publish(site, two, 90, "b")
    await two.commit_complete()
    assert await one.commit_complete() == ([], [])
    assert steps(site) == [100]


async def test_complete_steps_are_committed_in_their_order(site):
    one, two = await joined_gang(site)
    for step in (100, 90):
        await publish(site, one, step, "a")
        await publish(site, two, step, "b")
    await one.commit_complete()
    assert steps(site) == [90, 100]


async def test_a_part_of_the_previous_attempt_is_not_joined(site):
    one, _ = await joined_gang(site)
    await publish(site, one, 100, "a1")
    again = await join(site, 1, "w1-again")
    await again.membership.refresh()
    site.time += 10
    await publish(site, again, 100, "b2")
    _, problems = await again.commit_complete()
    assert problems[0].what == "step-100 waits for rank 0 of 2"
    _, problems = await one.commit_complete()
    assert (problems[0].what, commits(site)) == ("step-100 was given up", [])
    assert "has restarted" in problems[0].measured
    assert one.is_abandoned("step-100")


async def test_a_part_has_the_epoch_from_before_its_files_were_written(site):
    one, _ = await joined_gang(site)
    written = site.time
    site.time += 10
    again = await join(site, 1, "w1-again")
    await one.membership.refresh()
    site.time += 10
    await publish(site, again, 100, "b2")
    await publish(site, one, 100, "a1", when=written)
    for gang in (one, again):
        assert (await gang.commit_complete())[0] == []
    await publish(site, one, 110, "a2")
    await publish(site, again, 110, "b2")
    await one.commit_complete()
    assert steps(site) == [110]


async def test_files_older_than_the_agent_have_no_epoch(site):
    one, two = await joined_gang(site)
    for gang in (one, two):
        await publish(site, gang, 100, "a", when=BEFORE)
    assert [(await gang.commit_complete())[0] for gang in (one, two)] == [[], []]


async def test_files_of_the_future_have_no_epoch(site):
    for gang in await joined_gang(site):
        await publish(site, gang, 100, "a", when=site.time + 5)
        assert (await gang.commit_complete())[0] == []


async def test_a_waiting_step_is_not_lost_if_the_worker_restarts(site):
    _, two = await joined_gang(site)
    written = site.time
    site.time += 10
    await publish(site, await join(site, 0), 100, "a", when=written)
    await publish(site, two, 100, "b", when=written)
    assert len((await two.commit_complete())[0]) == 1


async def test_a_clock_that_is_set_back_joins_no_unrelated_parts(site):
    one, _ = await joined_gang(site)
    written = site.time
    await one.membership.refresh()
    site.time -= 300
    again = await join(site, 1, "w1-again")
    await one.membership.refresh()
    for later in (10, 400):
        site.time += later
        await publish(site, one, 100, "a1", when=written)
        await publish(site, again, 100, "b2")
        assert [(await gang.commit_complete())[0] for gang in (one, again)] == [[], []]


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


async def test_a_trainer_that_restarts_under_its_agent_is_another_attempt(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a1")
    site.time += 5
    await publish(site, one, 100, "a2", when=site.time - 1)
    await publish(site, two, 100, "b", when=site.time - 1)
    assert (await two.commit_complete())[0] == []
    names = [key for key in site.content.objects if "/ranks/" in key]
    assert sorted(names) == ["run/.podferry/ranks/0.2-w0", "run/.podferry/ranks/1-w1"]
    site.time += 10
    for gang in (one, two):
        await publish(site, gang, 110, "a")
    await two.commit_complete()
    assert steps(site) == [110]


async def test_a_lower_step_that_is_saved_later_is_another_attempt(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a1")
    site.time += 5
    await publish(site, one, 60, "a2", when=site.time - 1)
    await publish(site, two, 100, "b2", when=site.time - 1)
    assert (await two.commit_complete())[0] == []


async def test_a_drain_may_publish_older_steps_after_newer_ones(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a", when=site.time)
    await publish(site, one, 90, "a", when=site.time - 5)
    await publish(site, two, 90, "b")
    await two.commit_complete()
    assert steps(site) == [90]


async def test_added_files_are_of_the_same_attempt(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    site.time += 5
    await publish(site, one, 100, "a", ("late", "l"))
    await publish(site, two, 100, "b")
    assert [f.name for f in (await two.commit_complete())[0][0].files] == ["late", "rank-0", "rank-1"]


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


async def test_an_agent_that_starts_commits_what_is_complete(site):
    one, two = await joined_gang(site)
    for step in (100, 90):
        await publish(site, one, step, "a")
        await publish(site, two, step, "b")
    await publish(site, one, 110, "a")
    found = await quiet(site, 0, "next").commit_before_start()
    assert [commit.step for commit in found] == steps(site) == [90, 100]
    await join(site, 0, "next")
    await publish(site, two, 110, "b")
    assert await quiet(site, 1, "next").commit_before_start() == []


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


async def test_a_part_that_an_older_agent_has_replaced_is_written_again(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    path = "run/.podferry/parts/step-100/0.json"
    mine = site.content.objects[path]
    other = msgspec.json.decode(mine) | {"writer": "older", "generation": "0" * 32}
    site.content.objects[path] = msgspec.json.encode(other)
    await one.commit_complete()
    assert site.content.objects[path] == mine
    await publish(site, two, 100, "b")
    assert len((await two.commit_complete())[0]) == 1


async def test_a_part_refers_only_to_listed_data(site):
    one, two = await joined_gang(site)
    for gang in (one, two):
        await publish(site, gang, 100, "a")
    await one.commit_complete()
    kept = commits(site)[0].files[1]
    await publish(site, one, 110, "b", kept)
    with pytest.raises(Changed, match=r"gone-1/w"):
        await publish(site, two, 110, "b", file("w", "w", "gone-1"))
    assert (await one.commit_complete())[0] == []
    await publish(site, two, 110, "b", file("w", "w", "own-1"))


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


async def test_a_run_that_goes_back_on_purpose_commits_lower_steps(site):
    one, two = await joined_gang(site)
    for gang in (one, two):
        await publish(site, gang, 100, "a")
    await one.commit_complete()
    again = [await join(site, rank, f"x-again-{rank}") for rank in range(2)]
    for gang in again:
        await gang.membership.refresh()
    site.time += 10
    for gang in again:
        await publish(site, gang, 60, "c")
    await again[1].commit_complete()
    assert steps(site) == [100, 60]


async def test_a_damaged_part_is_ignored(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    await publish(site, two, 100, "b")
    site.content.objects["run/.podferry/parts/step-100/1.json"] = b"{"
    site.content.objects["run/.podferry/parts/step-100/x.json"] = b"{"
    assert (await one.commit_complete())[1][0].what == "step-100 waits for rank 1 of 2"
    assert len((await two.commit_complete())[0]) == 0
    assert len((await one.commit_complete())[0]) == 1

"""Another agent of the same lineage: which ones are noticed, and when."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from podferry.contract.destination.provenance import RunOrigin
from podferry.contract.errors import AccessDenied, Fenced, Unavailable
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.handover import DrainPhase, Handover
from podferry.sidecar.checkpoint.commit.rival_watch import RivalWatch, announce
from podferry.storage.memory.store import Fault
from tests.support.lineage_site import LOST

ORIGIN = RunOrigin("/work/train.py", "/work", "gpu-1", "0" * 12)


def now():
    return datetime(2026, 1, 1, tzinfo=UTC)


def committer(lineage, agent, rank=None):
    return Committer(CommitReader(lineage.reader.store), AgentIdentity(agent, rank=rank, origin=ORIGIN), now)


async def begin(lineage, agent, rank=None):
    made = committer(lineage, agent, rank)
    rival = await announce(made.store, made.identity, now)
    await made.begin(made.log.last)
    return made, rival


async def test_a_later_agent_is_noticed_until_it_ends(lineage):
    first, rival = await begin(lineage, "one")
    assert rival is None
    watch = RivalWatch(first)
    assert await watch.look() is None
    second, rival = await begin(lineage, "two")
    assert rival.agent_id == "one"
    found = await watch.look()
    expected = "agent two, started at 2026-01-01T00:00:00+00:00 for /work/train.py in /work on gpu-1"
    assert str(found) == expected
    await Handover(second.store, second.identity, now).write_note(DrainPhase.ENDED)
    assert await watch.look() is None
    rival = (await begin(lineage, "three"))[1]
    assert rival is None, "the one before has ended"


async def test_other_ranks_are_no_rivals(lineage):
    first, _ = await begin(lineage, "one", rank=0)
    _, rival = await begin(lineage, "two", rank=1)
    assert rival is None
    assert await RivalWatch(first).look() is None


async def test_a_commit_of_another_agent_fences_at_the_next_look(lineage):
    first, _ = await begin(lineage, "one")
    watch = RivalWatch(first)
    await first.commit("e1", "e1-00", ())
    assert await watch.look() is None
    second, _ = await begin(lineage, "two")
    await second.commit("e2", "e2-00", ())
    with pytest.raises(Fenced, match=r"two for /work/train.py in /work on gpu-1 created commit"):
        await watch.look()
    with pytest.raises(Fenced):
        await first.commit("e3", "e3-00", ())


async def test_a_store_that_does_not_answer_does_not_say_that_nobody_started(lineage):
    watch = RivalWatch((await begin(lineage, "one"))[0])
    await begin(lineage, "two")
    lineage.faults.append(Fault("read", "*writer.json", error=LOST))
    with pytest.raises(Unavailable):
        await watch.look()
    assert (await watch.look()).agent_id == "two"


async def test_nothing_is_listed_while_nobody_commits(lineage):
    first, _ = await begin(lineage, "one")
    await first.commit("e1", "e1-00", ())
    watch = RivalWatch(first)
    await watch.look()
    lineage.store.content.calls.clear()
    await watch.look()
    assert sorted(call for call, _ in lineage.store.content.calls) == ["read", "stat"]


async def test_a_look_waits_for_a_commit_that_is_being_made(lineage):
    """Otherwise the number that it takes could follow one that it has not examined."""
    first, _ = await begin(lineage, "one")
    await first.commit("e1", "e1-00", ())
    second, _ = await begin(lineage, "two")
    checked, go = asyncio.Event(), asyncio.Event()

    async def check():
        checked.set()
        await go.wait()

    committing = asyncio.create_task(first.commit("e2", "e2-00", (), check=check))
    await checked.wait()
    await second.commit("x", "x-00", ())
    looking = asyncio.create_task(RivalWatch(first).look())
    await asyncio.sleep(0)
    go.set()
    results = await asyncio.gather(committing, looking, return_exceptions=True)
    assert [type(result) for result in results] == [Fenced, Fenced]
    assert [commit.agent_id for commit in lineage.commits() if commit.name in {"e2", "x"}] == ["two"]


async def test_a_destination_that_rejects_writes_is_refused_and_a_damaged_announcement_is_replaced(lineage):
    lineage.objects["base/run/.podferry/writer.json"] = b"{"
    assert (await begin(lineage, "one"))[1] is None
    note = msgspec.json.decode(lineage.objects["base/run/.podferry/writer.json"])
    assert (note["writer"], note["run"]) == ("one", None)
    lineage.faults.append(Fault("write", error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await begin(lineage, "two")

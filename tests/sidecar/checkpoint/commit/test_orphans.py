from datetime import UTC, datetime

import msgspec
import pytest

from podferry.contract.destination.agent_notes import FORMAT as NOTE_FORMAT
from podferry.contract.destination.agent_notes import AgentNote, DrainPhase, note_name
from podferry.contract.destination.commit import FORMAT, Commit, CommittedFile, commit_name, encode_commit
from podferry.contract.destination.confidence import confirmation_name
from podferry.contract.errors import Corrupt, Refused
from podferry.contract.uri import parse_uri
from podferry.contract.versioned_json import encode_document
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.orphans import (
    active_agents,
    find_orphans,
    plan_orphans,
    remove_orphans,
)
from podferry.storage.memory.store import Content, Fault, MemoryStore

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
COMMIT = commit_name(1)
KEPT = {"a-00/w", COMMIT, ".podferry/latest.json", ".podferry/writer.json"}


class Death(BaseException):
    """Ends a process as a kill does."""


@pytest.fixture
def objects():
    """One commit, and what an abandoned upload has left."""
    file = CommittedFile("w", "a-00/w", 1, "0" * 32)
    commit = Commit(FORMAT, 1, "run", "a-00", "a", None, WHEN, (file,), "me")
    made = {
        COMMIT: encode_commit(commit),
        "a-00/w": b"1",
        "a-00/half": b"22",
        "b-00/w": b"333",
        ".podferry/latest.json": b"{}",
        ".podferry/writer.json": msgspec.json.encode({"writer": "me", "since": WHEN}),
        ".podferry/parts/b/0.json": b"p",
        ".podferry/ranks/0-me": b"r",
        ".podferry/ranks/1-other": b"r",
        ".podferry/writers/other.json": b"m",
    }
    return {f"base/run/{name}": data for name, data in made.items()} | {"base/runs/x": b"another's"}


@pytest.fixture
def collector(objects):
    content = Content()
    content.objects = objects
    return GarbageCollector(
        CommitReader(LineageStore(MemoryStore(parse_uri("memory://left/base"), content), "run"))
    )


def end(objects, writer, phase=DrainPhase.ENDED):
    objects[f"base/run/{note_name(writer)}"] = encode_document(AgentNote(NOTE_FORMAT, writer, phase, WHEN))


def names(objects):
    return {key.removeprefix("base/run/") for key in objects if key.startswith("base/run/")}


async def test_orphans_are_what_no_commit_lists(collector, objects):
    end(objects, "me")
    end(objects, "other")
    found = await find_orphans(collector)
    assert found.data == {"a-00/half": 2, "b-00/w": 3}
    assert set(found.records) == {
        ".podferry/parts/b/0.json",
        ".podferry/ranks/0-me",
        ".podferry/ranks/1-other",
        ".podferry/writers/other.json",
        note_name("other"),
    }


async def test_a_confirmation_stays_as_long_as_its_commit(collector, objects):
    for number in (1, 2):
        objects[f"base/run/{confirmation_name(number)}"] = b"{}"
    records = (await find_orphans(collector)).records
    assert {name for name in records if "/confirmed/" in name} == {confirmation_name(2)}


def test_a_nested_lineage_is_left_alone():
    inner = {"team/b/w": 1, "team/.podferry/writer.json": 1, "team/.podferry/ranks/0-x": 1}
    assert plan_orphans({**inner, "teams/w": 2, "team": 3}, set()).data == {"teams/w": 2, "team": 3}
    assert plan_orphans(inner, set()).records == {}


async def test_nothing_is_removed_while_an_agent_may_be_active(collector, objects):
    end(objects, "me", DrainPhase.DRAINING)
    before = dict(objects)
    with pytest.raises(Refused) as refused:
        await remove_orphans(collector, force=False)
    assert [problem.measured for problem in refused.value.problems] == [
        "me, since 2026-01-01T00:00:00Z, has left no note that it ended",
        "other, which has started there, has left no note that it ended",
    ]
    assert objects == before


@pytest.mark.parametrize("force", [False, True])
async def test_orphans_are_removed_if_all_agents_have_ended_or_with_force(collector, objects, force):
    if not force:
        end(objects, "me")
        end(objects, "other")
    gone = await remove_orphans(collector, force=force)
    assert gone.data == {"a-00/half": 2, "b-00/w": 3}
    assert names(objects) == KEPT | ({note_name("me")} if not force else set())
    assert await active_agents(collector.store) == [] or force
    assert objects["base/runs/x"] == b"another's"


async def test_an_agent_that_starts_during_the_removal_is_seen_or_sees_the_tombstone(collector, objects):
    end(objects, "me")
    end(objects, "other")
    store = collector.store.destination
    write = store.write

    async def started(name, body, mode):
        objects["base/run/.podferry/ranks/0-new"] = b"r"
        await write(name, body, mode)

    store.write = started
    with pytest.raises(Refused, match="new, rank 0"):
        await remove_orphans(collector, force=False)
    assert {"a-00/half", "b-00/w", ".podferry/parts/b/0.json"} <= names(objects)


async def test_a_commit_that_cannot_be_read_may_list_anything(collector, objects):
    objects[f"base/run/{COMMIT}"] = b"{"
    before = dict(objects)
    with pytest.raises(Corrupt):
        await remove_orphans(collector, force=True)
    assert objects == before


async def test_an_announcement_that_cannot_be_read_is_reported(collector, objects):
    objects["base/run/.podferry/writer.json"] = b"{"
    with pytest.raises(Corrupt, match="is not an announcement"):
        await active_agents(collector.store)


@pytest.mark.parametrize("skip", range(7))
@pytest.mark.parametrize("call", ["write", "delete"])
async def test_a_kill_leaves_what_the_next_run_removes(collector, objects, call, skip):
    collector.store.destination.faults.append(Fault(call, skip=skip, error=Death()))
    try:
        await remove_orphans(collector, force=True)
    except Death:
        assert names(objects) >= KEPT
    else:
        assert (call, skip >= 2) == ("write", True)
    await remove_orphans(GarbageCollector(CommitReader(collector.store)), force=True)
    assert names(objects) == KEPT


async def test_parts_are_removed_before_their_announcements(collector, objects):
    await remove_orphans(collector, force=True)
    gone = [name for call, name in collector.store.destination.content.calls if call == "delete"]
    part, rank = (gone.index(f"run/.podferry/{name}") for name in ("parts/b/0.json", "ranks/0-me"))
    assert part < rank

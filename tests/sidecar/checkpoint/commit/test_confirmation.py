"""A confirmation settles the doubts of one commit, and changes nothing that exists."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from podferry.contract.destination.commit import Confidence, Doubt, DoubtKind, commit_name, encode_commit
from podferry.contract.destination.confidence import (
    Confirmation,
    Confirmer,
    confirmation_name,
    decode_confirmation,
)
from podferry.sidecar.checkpoint.commit.confirmation import confirm
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from tests.support.commits import put

AT = datetime(2026, 1, 2, tzinfo=UTC)


async def newest(lineage):
    return await anext(lineage.reader.newest_first())


@pytest.fixture
def doubtful(lineage):
    return lineage.put(5, "e/w", doubt="its end is not proven")


async def test_a_confirmed_commit_is_sure(lineage, doubtful):
    assert (await newest(lineage)) == doubtful
    await confirm(lineage.reader.store, doubtful, Confirmer.PERSON, "it loads", now=lambda: AT)
    found = await newest(lineage)
    assert (found.is_sure, found.doubts, found.sequence) == (True, (), 5)
    key = f"base/run/{confirmation_name(5)}"
    expected = Confirmation(1, 5, "s5-00", Confirmer.PERSON, "it loads", AT)
    assert decode_confirmation(lineage.objects[key], key) == expected


async def test_a_second_confirmation_changes_nothing(lineage, doubtful):
    await confirm(lineage.reader.store, doubtful, Confirmer.PERSON, "it loads")
    before = dict(lineage.objects)
    await confirm(lineage.reader.store, doubtful, Confirmer.AGENT, "a later save is complete")
    assert lineage.objects == before


async def test_each_rank_confirms_its_own_part(lineage, doubtful):
    doubts = tuple(Doubt(DoubtKind.UNPROVEN, "no end", rank) for rank in (0, 1))
    both = msgspec.structs.replace(doubtful, doubts=doubts, confidence=Confidence.DOUBTFUL)
    lineage.objects[f"base/run/{commit_name(5)}"] = encode_commit(both)
    await confirm(lineage.reader.store, both, Confirmer.AGENT, "exit 0", rank=1)
    assert (await newest(lineage)).doubts == doubts[:1]
    await confirm(lineage.reader.store, both, Confirmer.AGENT, "exit 0", rank=0)
    assert (await newest(lineage)).is_sure


@pytest.mark.parametrize("damage", ["of another checkpoint", "of another commit", "damaged"])
async def test_a_confirmation_of_something_else_settles_nothing(lineage, doubtful, damage):
    about = {
        "of another checkpoint": msgspec.structs.replace(doubtful, checkpoint="s5-11"),
        "of another commit": msgspec.structs.replace(doubtful, sequence=4),
        "damaged": doubtful,
    }[damage]
    await confirm(lineage.reader.store, about, Confirmer.PERSON, "it loads")
    text = lineage.objects.pop(f"base/run/{confirmation_name(about.sequence)}")
    text = text[:-5] if damage == "damaged" else text
    lineage.objects[f"base/run/{confirmation_name(5)}"] = text
    assert not (await newest(lineage)).is_sure


async def test_a_live_agent_is_not_fenced(rig):
    agent = rig.committer("one")
    made = await put(agent, 1)
    await confirm(LineageStore(rig.store, "run"), made, Confirmer.PERSON, "it loads")
    assert (await put(agent, 2)).sequence == 2
    assert [commit.agent_id for commit in rig.store.commits()] == ["one", "one"]


async def test_sure_commits_cost_no_further_request(lineage):
    lineage.store.content.calls.clear()
    assert (await newest(lineage)).is_sure
    assert [call for call, _ in lineage.store.content.calls].count("read") == 2

from __future__ import annotations

import msgspec
import pytest

from podferry.contract.errors import AccessDenied, Corrupt
from podferry.sidecar.checkpoint.commit.agent_identity import Announcement, decode_announcement
from podferry.storage.memory.store import Fault
from tests.support.commits import put, ranked


async def test_announcing_shows_whether_writes_work(rig):
    committer = rig.committer("me")
    rig.faults.append(Fault("write", error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await committer.announce()
    await committer.announce()
    note = msgspec.json.decode(rig.content.objects["base/run/.podferry/writer.json"])
    assert (note["writer"], note["run"]) == ("me", None)


async def test_a_commit_names_its_agent_and_rank(rig):
    commit = await put(ranked(rig, "one", 3), 1)
    assert (commit.agent_id, commit.rank, commit.reserved) == ("one", 3, 0)


def test_an_announcement_is_read_under_its_stored_names():
    found = decode_announcement(b'{"writer": "me", "since": "today", "run": "r", "later": 1}', "x")
    assert found == Announcement("me", "today", "r")
    with pytest.raises(Corrupt, match=r"writer\.json is not an announcement"):
        decode_announcement(b"{}", "writer.json")

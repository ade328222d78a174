from __future__ import annotations

import pytest

from podferry.contract.errors import Corrupt
from podferry.sidecar.checkpoint.commit.agent_identity import Announcement, decode_announcement
from tests.support.commits import put, ranked


async def test_a_commit_names_its_agent_and_rank(rig):
    commit = await put(ranked(rig, "one", 3), 1)
    assert (commit.agent_id, commit.rank, commit.reserved) == ("one", 3, 0)


def test_an_announcement_is_read_under_its_stored_names():
    found = decode_announcement(b'{"writer": "me", "since": "today", "run": "r", "later": 1}', "x")
    assert found == Announcement("me", "today", "r")
    with pytest.raises(Corrupt, match=r"writer\.json is not an announcement"):
        decode_announcement(b"{}", "writer.json")

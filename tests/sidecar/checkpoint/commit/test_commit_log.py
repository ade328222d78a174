from __future__ import annotations

import pytest

from podferry.contract.destination.commit import decode_commit
from podferry.contract.errors import Superseded, Unavailable
from podferry.storage.memory.store import Fault
from tests.support.commits import COMMITS, LOST, numbers, put, ranked


async def test_a_number_without_a_readable_commit_is_left_alone(rig):
    committer = rig.committer()
    await put(committer, 1)
    key = "base/run/.podferry/commits/000000000002.json"
    rig.store.check = lambda before: None
    rig.content.objects[key] = b"somebody's note"
    assert (await put(committer, 2)).sequence == 3
    assert rig.content.objects[key] == b"somebody's note"


async def test_older_checkpoints_take_the_numbers_reserved_by_the_newest(rig):
    committer = rig.committer()
    await put(committer, 1)
    newest = await put(committer, 4, reserve=2)
    third = await put(committer, 3, below=newest.sequence)
    second = await put(committer, 2, below=third.sequence)
    assert numbers(rig) == [(1, "e1"), (2, "e2"), (3, "e3"), (4, "e4")]
    assert (newest.reserved, third.reserved, second.reserved) == (2, 1, 0)
    assert decode_commit(rig.content.objects["base/run/.podferry/latest.json"], "x") == newest
    with pytest.raises(Superseded, match="newer checkpoint"):
        await put(committer, 0, below=second.sequence)
    assert (await put(committer, 5)).sequence == 5


async def test_numbers_can_be_reserved_below_the_same_commit_again(rig):
    committer = rig.committer()
    newest = await put(committer, 4, reserve=2)
    assert [(await put(committer, n, below=newest.sequence)).sequence for n in (3, 2)] == [2, 1]


async def test_reserved_numbers_are_known_after_a_restart(rig):
    newest = await put(rig.committer(), 2, reserve=1)
    assert (await put(rig.committer(), 1, below=newest.sequence)).sequence == 1


async def test_no_number_is_free_below_a_commit_that_reserved_none(rig):
    committer = rig.committer()
    await put(committer, 1)
    newest = await put(committer, 3)
    for number in (newest.sequence, 99):
        with pytest.raises(Superseded):
            await put(committer, 2, below=number)


async def test_a_commit_whose_answer_was_lost_keeps_its_number(rig):
    committer = rig.committer()
    await put(committer, 1)
    rig.faults.append(Fault("write", COMMITS, error=LOST, after=True))
    rig.faults.append(Fault("write", COMMITS, times=2, error=LOST))
    with pytest.raises(Unavailable):
        await put(committer, 2)
    await put(committer, 3)
    assert (await put(committer, 2)).sequence == 2
    assert numbers(rig) == [(1, "e1"), (2, "e2"), (3, "e3")]


async def test_only_new_commits_are_read(rig):
    for number in range(1, 9):
        await put(ranked(rig, f"w{number}", number), number)
    committer = ranked(rig, "late", 0)
    await put(committer, 9)
    await put(committer, 10)
    await put(ranked(rig, "other", 1), 11)
    rig.content.calls.clear()
    await put(committer, 12)
    reads = [name for call, name in rig.content.calls if call == "read"]
    assert reads == ["run/.podferry/commits/000000000011.json"]

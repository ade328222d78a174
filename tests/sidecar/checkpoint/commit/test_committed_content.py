from __future__ import annotations

import msgspec
import pytest

from podferry.contract.destination.commit import commit_name, encode_commit
from podferry.sidecar.checkpoint.commit.committed_content import SameContent, is_among
from tests.support.commits import put

NOW = 10
NEW, LISTED = SameContent(), SameContent(listed=True)


@pytest.fixture
def find(rig):
    """Look for the content of a commit, as another agent does."""
    content = rig.committer("two").content
    return lambda commit: content.find(commit.name, commit.checkpoint, NOW)


async def test_the_same_content_is_found_among_earlier_commits(rig, find):
    first = await put(rig.committer(), 1)
    await put(rig.committer(), 2)
    assert await find(first) == SameContent(first, listed=True)
    content = rig.committer("two").content
    assert await content.find("e1", "e1-ff", NOW) == NEW
    await rig.store.write("run/e9-00/w", b"never committed")
    assert await rig.committer("two").content.find("e9", "e9-00", NOW) == NEW


async def test_the_trainer_returns_to_an_earlier_version(rig, find):
    first = await put(rig.committer(), 1)
    await put(rig.committer(), 1, b"2")
    assert await find(first) == LISTED


async def test_a_commit_whose_data_was_removed_does_not_count(rig, find):
    commit = await put(rig.committer(), 1)
    rig.content.objects[f"base/run/{commit.checkpoint}/v"] = b"another one is left"
    del rig.content.objects[f"base/run/{commit.checkpoint}/w"]
    assert await find(commit) == LISTED


async def test_a_commit_of_a_damaged_object_does_not_count(rig):
    commit = await put(rig.committer(), 1)
    content = rig.committer("two").content
    content.damaged = {commit.files[0].object}
    assert await content.find(commit.name, commit.checkpoint, NOW) == LISTED


async def test_a_commit_in_another_folder_is_found(rig, find):
    """It was made because an earlier one of the same content was damaged."""
    commit = await put(rig.committer(), 1)
    again = msgspec.structs.replace(commit, checkpoint=f"{commit.checkpoint}-two", sequence=2)
    rig.content.objects[f"base/run/{commit_name(2)}"] = encode_commit(again)
    assert await find(commit) == SameContent(again, listed=True)


async def test_a_folder_is_unused_if_nothing_is_there_or_is_being_removed(rig):
    content = rig.committer("agent-id-two").content
    assert await content.unused_folder("e1-31", "agent-id-two", ()) == "e1-31-agent-id"
    content.add("e1-31-agent-id")
    removed = ["e1-31-agent-id-2/w"]
    assert await content.unused_folder("e1-31", "agent-id-two", removed) == "e1-31-agent-id-3"


def test_names_are_in_a_folder_by_its_whole_name():
    assert is_among("e1", ["e1/w"])
    assert not is_among("e1", ["e1-31/w"])


@pytest.mark.parametrize(
    ("abandoned", "number", "stands"),
    [
        (range(0), 1, True),  # the run continues the newest one
        (range(4), 1, False),  # it started from the beginning
        (range(4), 3, True),  # so it did, but this is the newest
        (range(2, 4), 1, True),  # it resumed from the second one, which was saved after the first
        (range(2, 4), 2, False),
    ],
)
async def test_what_a_run_has_left_behind_does_not_stand_for_what_it_saves(rig, abandoned, number, stands):
    commits = {one: await put(rig.committer(), one) for one in (1, 2, 3)}
    content, commit = rig.committer("two").content, commits[number]
    content.abandoned = abandoned
    expected = SameContent(commit, listed=True) if stands else LISTED
    assert await content.find(commit.name, commit.checkpoint, NOW) == expected
    content.began_ns = NOW
    there_before = await content.find(commit.name, commit.checkpoint, NOW)
    assert there_before == SameContent(commit, listed=True)


async def test_the_newest_one_that_was_left_behind_does_not_stand_behind_a_later_save(rig):
    committer = rig.committer()
    committer.content.abandoned = range(2)
    first = await put(committer, 1)
    second = await put(committer, 2)
    assert await committer.content.find(first.name, first.checkpoint, NOW) == LISTED
    third = await put(committer, 3)
    own = SameContent(second, listed=True)
    assert await committer.content.find(second.name, second.checkpoint, NOW) == own
    assert third.sequence == 3

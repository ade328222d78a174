from __future__ import annotations

import msgspec
import pytest

from podferry.contract.destination.commit import commit_name, encode_commit
from podferry.sidecar.checkpoint.commit.committed_content import SameContent, is_among
from tests.support.commits import put

NEW, LISTED = SameContent(), SameContent(listed=True)


@pytest.fixture
def find(rig):
    """Look for the content of a commit, as another agent does."""
    content = rig.committer("two").content
    return lambda commit: content.find(commit.name, commit.checkpoint)


async def test_the_same_content_is_found_among_earlier_commits(rig, find):
    first = await put(rig.committer(), 1)
    await put(rig.committer(), 2)
    assert await find(first) == SameContent(first, listed=True)
    content = rig.committer("two").content
    assert await content.find("e1", "e1-ff") == NEW
    await rig.store.write("run/e9-00/w", b"never committed")
    assert await rig.committer("two").content.find("e9", "e9-00") == NEW


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
    assert await content.find(commit.name, commit.checkpoint) == LISTED


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

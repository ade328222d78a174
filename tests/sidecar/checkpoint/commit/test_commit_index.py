"""The index knows which objects all commits list, and how sure they are, without keeping their files."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.destination.confidence import Confirmer, confirmation_name
from podferry.sidecar.checkpoint.commit.commit_index import CommitIndex
from podferry.sidecar.checkpoint.commit.confirmation import confirm
from tests.support.lineage_site import Lineage

OBJECTS = st.sets(st.sampled_from([f"c{number}/w" for number in range(6)]), min_size=1)


def put_in(index, histories):
    """Add a commit for each set of objects, numbered from 1."""
    site = Lineage()
    for number, objects in enumerate(histories, 1):
        index.add(site.put(number, *sorted(objects)))


@settings(deadline=None)
@given(st.lists(OBJECTS, max_size=8), st.sets(st.integers(1, 8)))
def test_only_what_no_remaining_commit_lists_is_unlisted(histories, removed):
    index = CommitIndex(Lineage().reader)
    put_in(index, histories)
    kept = {name for number, names in enumerate(histories, 1) if number not in removed for name in names}
    objects = {f"c{number}/w": number for number in range(7)}
    expected = {name: size for name, size in objects.items() if name not in kept}
    assert index.unlisted(objects, removed) == expected


async def test_commits_are_rated_and_confirmations_count(lineage):
    doubtful = [lineage.put(number, "e/w", doubt="no end") for number in (5, 6)]
    await confirm(lineage.reader.store, doubtful[0], Confirmer.PERSON, "it loads")
    index = CommitIndex(lineage.reader)
    await index.refresh()
    assert [commit.is_sure for commit in await index.commits()] == [True] * 5 + [False]


async def test_commits_of_an_earlier_version_are_compared(lineage):
    lineage.put(5, "model", "optimizer", name="old-1", confidence=None)
    lineage.put(6, "model", name="old-2", confidence=None)
    index = CommitIndex(lineage.reader)
    await index.refresh()
    assert [commit.is_sure for commit in (await index.commits())[-2:]] == [True, False]


async def test_a_commit_is_read_once(lineage):
    index = CommitIndex(lineage.reader)
    await index.refresh()
    lineage.put(5, "e/w")
    lineage.store.content.calls.clear()
    await index.refresh()
    assert [name[-6:-5] for call, name in lineage.store.content.calls if call == "read"] == ["5"]


async def test_confirmations_without_a_commit_are_stale(lineage):
    for number in (3, 4, 9):
        lineage.objects[f"base/run/{confirmation_name(number)}"] = b"{}"
    index = CommitIndex(lineage.reader)
    await index.refresh()
    assert index.stale_confirmations() == [confirmation_name(9)]
    assert index.stale_confirmations({3}) == [confirmation_name(3), confirmation_name(9)]


@pytest.mark.parametrize("files", [2000])
def test_the_files_of_commits_are_not_kept(files):
    site, index = Lineage(), CommitIndex(Lineage().reader)
    tracemalloc.start()
    try:
        for number in range(1, 21):
            index.add(site.put(number, *(f"{number}/{file}" for file in range(files))))
            site.objects.clear()
        assert tracemalloc.get_traced_memory()[0] < 20 * files * 20, "at most 20 bytes a file"
    finally:
        tracemalloc.stop()

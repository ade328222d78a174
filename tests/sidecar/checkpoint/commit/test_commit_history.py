"""A history is listed once, and reads what is asked for: newest first, in batches, each commit once."""

from __future__ import annotations

import asyncio

import pytest

from podferry.contract.destination.commit import commit_name
from podferry.contract.errors import FormatTooNew, Unavailable
from podferry.sidecar.checkpoint.commit.commit_history import FIRST_BATCH, LOOK_BACK, MAX_BATCH, REMEMBERED
from podferry.storage.memory.store import Fault
from tests.support.lineage_site import Lineage
from tests.support.patience import PATIENCE


@pytest.fixture
def many():
    """A lineage of 200 commits."""
    made = Lineage()
    for number in range(1, 201):
        made.put(number, f"{number}/w", name=f"s{number}")
    return made


def calls(lineage, kind):
    return [name for call, name in lineage.store.content.calls if call == kind]


async def take(history, count):
    """The first commits of a history."""
    found = []
    async for commit in history.newest_first():
        found.append(commit)
        if len(found) == count:
            break
    return found


async def test_the_newest_are_read_in_batches_and_no_others(many):
    history = await many.reader.history()
    assert (history.newest, len(calls(many, "children")), calls(many, "read")) == (200, 2, [])
    assert [commit.sequence for commit in await take(history, 1)] == [200]
    assert len(calls(many, "read")) == FIRST_BATCH
    assert [commit.sequence for commit in await take(history, 4)] == [200, 199, 198, 197]
    assert len(calls(many, "read")) == 3 * FIRST_BATCH
    assert [commit.sequence for commit in await take(history, 500)] == list(range(200, 0, -1))
    assert len(calls(many, "read")) == len(set(calls(many, "read"))) == 200
    assert len(history.found) <= REMEMBERED + MAX_BATCH


async def test_a_batch_is_read_in_parallel(many):
    waiting, read_now = [], many.store.read

    async def read(name, *more, **options):
        waiting.append(name)
        async with asyncio.timeout(PATIENCE):
            while len(waiting) < FIRST_BATCH:  # noqa: ASYNC110 - of a list
                await asyncio.sleep(0)
        return await read_now(name, *more, **options)

    many.store.read = read
    assert len(await take(await many.reader.history(), 1)) == 1


async def test_a_later_history_reads_only_what_is_new(many):
    first = await many.reader.history()
    await take(first, 1)
    many.put(201, "201/w")
    del many.objects[f"base/run/{commit_name(199)}"]
    many.store.content.calls.clear()
    second = await many.reader.history(first)
    assert [commit.sequence for commit in await take(second, 2)] == [201, 200]
    assert [name[-8:-5] for name in calls(many, "read")] == ["201"]


async def test_an_error_counts_only_when_its_commit_is_reached(many):
    many.objects[f"base/run/{commit_name(199)}"] = b'{"format": 9}'
    history = await many.reader.history()
    assert [commit.sequence for commit in await take(history, 1)] == [200]
    with pytest.raises(FormatTooNew):
        await take(history, 2)


async def test_what_the_store_did_not_answer_is_asked_again(many):
    many.faults.append(Fault("read", "*200.json", error=Unavailable.of("no route")))
    history = await many.reader.history()
    with pytest.raises(Unavailable):
        await take(history, 1)
    assert [commit.sequence for commit in await take(history, 1)] == [200]


async def test_damaged_commits_are_kept_with_the_reason(many):
    many.objects[f"base/run/{commit_name(200)}"] = b"{"
    history = await many.reader.history()
    assert [commit.sequence for commit in await take(history, 1)] == [199]
    assert list(history.damaged) == [200]


async def test_an_old_commit_is_compared_with_the_one_before_in_its_series(many):
    many.put(201, "model", "optimizer", name="old-1", confidence=None)
    for number in range(202, 202 + 20):
        many.put(number, "b/w", name="other")
    many.put(300, "model", name="old-2", confidence=None)
    newest = (await take(await many.reader.history(), 1))[0]
    assert [doubt.reason for doubt in newest.doubts] == ["optimizer of old-1 has no counterpart"]


async def test_the_search_for_the_one_before_is_bounded(many):
    many.put(201, "c/model", name="unlike-any", confidence=None)
    assert (await take(await many.reader.history(), 1))[0].is_sure
    assert len(calls(many, "read")) <= 1 + LOOK_BACK + MAX_BATCH

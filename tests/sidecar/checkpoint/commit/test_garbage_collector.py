"""Garbage collection: what is removed, what failures leave, and all orders of concurrent calls."""

from __future__ import annotations

import asyncio
import os
from contextvars import ContextVar

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.destination.commit import FORMAT, Commit, CommittedFile, commit_name, encode_commit
from podferry.contract.destination.confidence import Confirmer, confirmation_name
from podferry.contract.destination.rank_parts import RankPart
from podferry.contract.errors import AlreadyExists, Corrupt, FormatTooNew, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.contract.versioned_json import encode_checksummed
from podferry.sidecar.checkpoint.commit.commit_index import MAX_LISTINGS
from podferry.sidecar.checkpoint.commit.confirmation import confirm
from podferry.sidecar.checkpoint.commit.retention import Retention
from podferry.sidecar.checkpoint.commit.tombstone_reader import names_being_removed
from podferry.storage.memory.store import Content, Fault, MemoryStore
from podferry.storage.store import WriteMode
from tests.support.lineage_site import KILLS, LOST, WHEN, Death, Lineage
from tests.support.patience import PATIENCE


def part(*objects):
    """A rank's part that names these objects."""
    files = tuple(CommittedFile(text, text, 1, "0" * 32) for text in objects)
    return encode_checksummed(RankPart(1, "run", "s5", 5, 0, 2, "w", "0-w", "", 4, "s5-00", files, WHEN))


async def test_the_oldest_are_removed_and_referenced_data_stays(lineage):
    gone = await lineage.collector().remove(2)
    assert ([one.sequence for one in gone.commits], gone.objects) == ([1, 2], {"a/w": 3, "b/w": 3})
    assert lineage.sequences == [3, 4]
    assert lineage.data == {"a/frozen", "c/w", "d/w"}
    assert (await lineage.collector().remove(1)).objects == {"a/frozen": 8, "c/w": 3}
    assert lineage.data == {"d/w"}
    assert lineage.names == {"d/w", commit_name(4)}


async def test_every_commit_is_deleted_before_any_data(lineage):
    await lineage.collector().remove(1)
    order = ["/commits/" in name for name in lineage.deleted() if "/removing/" not in name]
    assert order == sorted(order, reverse=True)
    commits = [name for name in lineage.deleted() if "/commits/" in name]
    assert commits == [commit_name(number) for number in (1, 2, 3)]


async def test_a_plan_changes_nothing(lineage):
    before = dict(lineage.objects)
    assert [one.sequence for one in (await lineage.collector().plan(1)).commits] == [1, 2, 3]
    assert before == lineage.objects


async def test_nothing_is_written_if_nothing_is_removed(lineage):
    await lineage.collector().remove(4)
    assert {call for call, _ in lineage.store.content.calls} == {"children"}


@pytest.mark.parametrize("keep", [1, 2])
async def test_the_newest_complete_commit_stays_if_newer_ones_are_damaged(lineage, keep):
    lineage.objects.pop("base/run/d/w")
    lineage.objects["base/run/c/w"] = b"longer than it was"
    await lineage.collector().remove(keep)
    assert lineage.sequences == ([2, 3, 4] if keep == 1 else [1, 2, 3, 4])


async def test_the_newest_sure_commit_stays_however_old(lineage):
    for number in (5, 6, 7):
        lineage.put(number, f"{number}/w", doubt="no end")
    assert [one.sequence for one in (await lineage.collector().remove(2)).commits] == [1, 2, 3, 5]
    assert lineage.sequences == [4, 6, 7]
    await confirm(lineage.reader.store, await lineage.reader.read(6), Confirmer.PERSON, "it loads")
    await lineage.collector().remove(2)
    assert lineage.sequences == [6, 7]


async def test_a_damaged_sure_commit_is_not_the_one_that_stays(lineage):
    lineage.put(5, "5/w", doubt="no end")
    lineage.objects.pop("base/run/d/w")
    await lineage.collector().remove(1)
    assert lineage.sequences == [3, 5]


async def test_confirmations_of_removed_commits_are_removed(lineage):
    for number in (1, 3, 4):
        lineage.objects[f"base/run/{confirmation_name(number)}"] = b"{}"
    lineage.objects[f"base/run/{confirmation_name(2, 7)}"] = b"{}"
    await lineage.collector().remove(1)
    assert {name for name in lineage.names if "/confirmed/" in name} == {confirmation_name(4)}


async def test_a_removal_may_be_limited_to_the_oldest(lineage):
    removed = await lineage.collector().remove(1, most=2)
    assert [one.sequence for one in removed.commits] == [1, 2]
    assert lineage.data == {"a/frozen", "c/w", "d/w"}


async def test_data_that_vanishes_between_two_removals_is_noticed(lineage):
    collector = lineage.collector()
    await collector.remove(3)
    lineage.objects.pop("base/run/d/w")
    await collector.remove(1)
    assert lineage.sequences == [3, 4]


@pytest.mark.parametrize(
    ("text", "error"), [(b"{", Corrupt), (b'{"format": 3}', FormatTooNew)], ids=["corrupt", "newer"]
)
async def test_a_commit_that_cannot_be_read_may_list_anything(lineage, text, error):
    lineage.objects[f"base/run/{commit_name(2)}"] = text
    before = dict(lineage.objects)
    with pytest.raises(error):
        await lineage.collector().remove(1)
    assert lineage.objects == before


async def test_a_commit_created_between_commits_and_data_keeps_all_data(lineage):
    wait = asyncio.Event()
    lineage.faults.append(Fault("children", "*/commits", wait=wait, skip=2))
    task = asyncio.create_task(lineage.collector().remove(1))
    async with asyncio.timeout(PATIENCE):
        while lineage.sequences != [4]:  # noqa: ASYNC110 - of a dictionary
            await asyncio.sleep(0)
    lineage.objects[f"base/run/{commit_name(5)}"] = b"{"
    wait.set()
    with pytest.raises(Corrupt):
        await task
    assert lineage.data == {"a/w", "a/frozen", "b/w", "c/w", "d/w"}
    del lineage.objects[f"base/run/{commit_name(5)}"]
    assert set(await lineage.collector().finish()) == {"a/w", "a/frozen", "b/w", "c/w"}
    assert lineage.data == {"d/w"}


async def test_data_named_by_a_part_stays(lineage):
    lineage.objects["base/run/.podferry/parts/s5/0.json"] = part("a/frozen", "b/w")
    assert (await lineage.collector().remove(1)).objects == {"a/w": 3, "c/w": 3}
    assert lineage.data == {"a/frozen", "b/w", "d/w"}
    lineage.objects["base/run/.podferry/parts/s5/0.json"] = b"{"
    lineage.put(5, "e/w")
    with pytest.raises(Corrupt, match="is not a valid rank part"):
        await lineage.collector().remove(1)
    assert lineage.data == {"a/frozen", "b/w", "d/w", "e/w"}


async def test_parts_are_read_before_commits(lineage):
    """A commit that takes the lineage of its parts between the two looks is seen as the one or the other."""
    lineage.objects["base/run/.podferry/parts/s5/0.json"] = part("a/frozen")
    collector, entries = lineage.collector(), lineage.store.entries

    async def replaced(prefix=""):
        async for entry in entries(prefix):
            lineage.put(5, "e/w", "a/frozen")
            lineage.objects.pop("base/run/.podferry/parts/s5/0.json", None)
            yield entry

    lineage.store.entries = replaced
    await collector.remove(1)
    assert lineage.data == {"a/frozen", "d/w", "e/w"}


async def test_listing_missing_commits_gives_up(lineage):
    lineage.faults.append(Fault("read", "*/commits/*1.json", times=MAX_LISTINGS, error=NotFound.of("no")))
    with pytest.raises(Unavailable, match="listed but do not exist"):
        await lineage.collector().remove(1)
    await lineage.collector().remove(1)
    assert lineage.sequences == [4]


@pytest.mark.parametrize(("call", "skip", "after"), KILLS)
async def test_a_kill_leaves_complete_commits_and_the_next_run_cleans_up(lineage, call, skip, after):
    lineage.faults.append(Fault(call, skip=skip, error=Death(), after=after))
    try:
        await lineage.collector().remove(1)
    except Death:
        pass
    else:
        assert skip >= {"write": 2, "delete": 8}[call]
    lineage.faults.clear()
    for number in lineage.sequences:
        assert not await lineage.reader.missing_objects(await lineage.reader.read(number))
    assert 4 in lineage.sequences
    retention = Retention(lineage.reader, 1)
    retention.request(lineage.put(5, "e/w"))
    await retention.remove()
    assert (lineage.sequences, lineage.data) == ([5], {"e/w"})


async def test_removed_data_may_be_uploaded_again_after_a_lost_answer(lineage):
    lineage.faults.append(Fault("delete", "*/removing/*", error=LOST, after=True))
    collector = lineage.collector()
    with pytest.raises(Unavailable):
        await collector.remove(1)
    lineage.objects["base/run/a/w"] = b"on its way to a commit"
    lineage.put(5, "e/w")
    await collector.remove(1)
    assert lineage.data == {"a/w", "e/w"}


# Concurrent actors: every store call waits for its turn, and a schedule decides whose turn it is.

ACTOR: ContextVar[str] = ContextVar("ACTOR")
CONTENTS = [{"w": b"0", "big": b"A"}, {"w": b"1", "big": b"A"}, {"w": b"2", "big": b"B"}]
SETTLED = 30
"""Turns of the event loop after which only waiting calls are left."""
MANY = 1000
EXAMPLES = int(os.environ.get("REMOTE_EXAMPLES", "40"))


class ScheduledContent(Content):
    """Every call waits for its turn; each deleted name is a call of its own."""

    def __init__(self):
        super().__init__()
        self.waiting: list[tuple[str, asyncio.Event]] = []

    async def meet(self, call, name):
        if actor := ACTOR.get(""):
            turn = asyncio.Event()
            self.waiting.append((actor, turn))
            await turn.wait()
        return await super().meet(call, name)


class ScheduledStore(MemoryStore):
    """Writes without the thread that the real store reads the body in."""

    async def write(self, name, body, mode=WriteMode.OVERWRITE):
        await self.content.meet("write", name)
        if mode is WriteMode.CREATE and self._key(name) in self.content.objects:
            raise AlreadyExists.of(name)
        self.content.objects[self._key(name)] = bytes(body)


async def upload(lineage, writer, name, files):
    """Upload by the rules that `podferry.sidecar.checkpoint.commit.garbage_collector` relies on."""
    sums = {one: xxhash.xxh3_128_hexdigest(data) for one, data in files.items()}
    folder = f"{name}-{'-'.join(sums[one][:4] for one in sorted(sums))}"
    for turn in range(50):
        commits = [commit async for commit in lineage.reader.newest_first()][::-1]
        if any(commit.checkpoint.startswith(folder) for commit in commits):
            return
        taken = await names_being_removed(lineage.reader.store)
        clear = all(f"{folder}/{one}" not in taken for one in files)
        target = folder if clear else f"{folder}-{writer}{turn}"
        before = commits[-1].files if commits else ()
        there = {file.xxh128: file.object for file in before}
        sent = []
        for one, data in files.items():
            where = there.get(sums[one])
            if where is None:
                where = f"{target}/{one}"
                await lineage.store.write(f"run/{where}", data)
            sent.append(CommittedFile(one, where, len(data), sums[one]))
        number = commits[-1].sequence + 1 if commits else 1
        commit = Commit(FORMAT, number, "run", target, name, None, WHEN, tuple(sorted(sent)), writer)
        try:
            await lineage.store.write(f"run/{commit_name(number)}", encode_commit(commit), WriteMode.CREATE)
        except AlreadyExists:
            lineage.abandoned |= {file.object for file in sent}
            continue
        return


async def run_uploader(lineage, writer, contents):
    ACTOR.set(writer)
    for content in contents:
        await upload(lineage, writer, "last", CONTENTS[content])


async def run_collector(lineage, name, keeps):
    ACTOR.set(name)
    for keep in keeps:
        collector = lineage.collector()
        await collector.remove(keep)
        await collector.finish()


def check(lineage, newest):
    """Check that every commit is complete and the newest still exists; returns its number."""
    for commit in lineage.commits():
        for file in commit.files:
            data = lineage.objects.get(f"base/run/{file.object}")
            assert data is not None, f"commit {commit.sequence} has lost {file.object}"
            assert xxhash.xxh3_128_hexdigest(data) == file.xxh128
    found = max(lineage.sequences, default=0)
    assert found >= newest
    return found


async def settle():
    """Wait until only calls that wait for their turn are left."""
    for _ in range(SETTLED):
        await asyncio.sleep(0)


async def advance(lineage, actor, calls, newest=0):
    """Let an actor make up to `calls` calls; returns the newest commit's number."""
    content = lineage.store.content
    await settle()
    for _ in range(calls):
        turn = next((one for one in content.waiting if one[0] == actor), None)
        if turn is None:
            break
        content.waiting.remove(turn)
        turn[1].set()
        await settle()
        newest = check(lineage, newest)
    return newest


@pytest.mark.parametrize("other", [False, True], ids=["one collector", "two collectors"])
@pytest.mark.parametrize("stall", range(14))
@pytest.mark.parametrize("again", [0, 1], ids=["all the same", "one file the same"])
async def test_content_uploaded_again_is_safe_from_a_stalled_collector(stall, other, again):
    """The collector stalls after each of its calls, and resumes after each of the uploader's."""
    for pause in range(12):
        lineage = Lineage(ScheduledStore(parse_uri("memory://remote/base"), ScheduledContent()))
        for content in (0, 2):
            await upload(lineage, "w0", "last", CONTENTS[content])
        late = asyncio.create_task(run_collector(lineage, "late", [1]))
        await advance(lineage, "late", stall)
        if other:
            await lineage.collector().remove(1)
        writer = asyncio.create_task(run_uploader(lineage, "w1", [again]))
        newest = await advance(lineage, "w1", pause, 2)
        newest = await advance(lineage, "late", MANY, newest)
        assert await advance(lineage, "w1", MANY, newest) >= 2
        await asyncio.gather(late, writer)


async def play(writers, collectors, schedule):
    """Run all by a schedule of (whose turn, how many calls); 0 calls kill the actor. Then all finish."""
    content = ScheduledContent()
    lineage = Lineage(ScheduledStore(parse_uri("memory://remote/base"), content))
    tasks = {
        f"w{n}": asyncio.create_task(run_uploader(lineage, f"w{n}", one)) for n, one in enumerate(writers)
    }
    tasks |= {
        f"r{n}": asyncio.create_task(run_collector(lineage, f"r{n}", one)) for n, one in enumerate(collectors)
    }
    steps, newest = iter(schedule), 0
    await settle()
    while content.waiting:
        whose, calls = next(steps, (0, 1))
        present = sorted({actor for actor, _ in content.waiting})
        actor = present[whose % len(present)]
        if not calls:
            tasks[actor].cancel()
            content.waiting = [one for one in content.waiting if one[0] != actor]
        newest = await advance(lineage, actor, calls, newest)
        await settle()
    done = await asyncio.gather(*tasks.values(), return_exceptions=True)
    assert [one for one in done if isinstance(one, Exception)] == []
    return lineage, [name for name, task in tasks.items() if task.cancelled()]


STEPS = st.tuples(st.integers(0, 3), st.integers(0, 20))
UPLOADS = st.lists(st.integers(0, len(CONTENTS) - 1), min_size=1, max_size=4)
REMOVALS = st.lists(st.integers(1, 2), min_size=1, max_size=3)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(UPLOADS, min_size=1, max_size=2),
    st.lists(REMOVALS, min_size=1, max_size=2),
    st.lists(STEPS, max_size=40),
)
def test_in_every_order_of_calls_each_commit_is_complete(writers, collectors, schedule):
    async def run():
        lineage, killed = await play(writers, collectors, schedule)
        newest = check(lineage, 0)
        await lineage.collector().remove(1)
        await lineage.collector().finish()
        assert check(lineage, newest) == newest
        if not any(actor.startswith("w") for actor in killed):
            listed = {file.object for commit in lineage.commits() for file in commit.files}
            assert lineage.data <= listed | lineage.abandoned

    asyncio.run(run())


async def test_each_kind_keeps_its_own_newest(lineage):
    for number in (5, 6, 7):
        lineage.put(number, f"m{number}/metrics.json")
    assert [one.sequence for one in (await lineage.collector().remove(2)).commits] == [1, 2, 5]
    assert lineage.data == {"a/frozen", "c/w", "d/w", "m6/metrics.json", "m7/metrics.json"}
    assert [one.sequence for one in (await lineage.collector().remove(1, most=1)).commits] == [3]
    assert [one.sequence for one in (await lineage.collector().remove(1)).commits] == [6]
    assert lineage.sequences == [4, 7]


async def test_small_files_and_other_series_push_out_no_state(lineage):
    lineage.put(5, "vocab/w", name="vocab")
    lineage.put(6, "vocab/w", name="vocab")
    lineage.put(7, "last_step", name="last_step")
    await lineage.collector().remove(1)
    assert lineage.sequences == [4, 6, 7]


async def test_late_commits_push_out_no_newer_one(lineage):
    lineage.put(5, "e/w", name="archived-2", late=True)
    lineage.put(6, "f/w", name="archived-3", late=True)
    await lineage.collector().remove(1)
    assert lineage.sequences == [4, 6]


async def test_the_newest_complete_one_of_each_kind_stays(lineage):
    lineage.put(5, "m5/metrics.json")
    lineage.put(6, "m6/metrics.json")
    for name in ("d/w", "m6/metrics.json"):
        lineage.objects.pop(f"base/run/{name}")
    await lineage.collector().remove(1)
    assert lineage.sequences == [3, 4, 5, 6]

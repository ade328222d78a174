import asyncio

import msgspec
import pytest
from structlog.testing import capture_logs

from podferry.contract.destination.commit import decode_commit, encode_commit
from podferry.contract.errors import AccessDenied, Fenced, Superseded, Unavailable
from podferry.storage.memory.store import Fault
from podferry.storage.store import WriteMode
from tests.support.commits import COMMITS, LOST, numbers, put, ranked


async def test_numbers_have_no_gaps_and_continue_after_a_restart(rig):
    committer = rig.committer()
    assert [(await put(committer, n)).sequence for n in (1, 2)] == [1, 2]
    assert (await put(rig.committer("two"), 3)).sequence == 3


async def test_latest_is_a_copy_of_the_newest_commit(rig):
    commit = await put(rig.committer(), 1)
    assert decode_commit(rig.content.objects["base/run/.podferry/latest.json"], "x") == commit


async def test_a_latest_copy_that_cannot_be_written_is_not_a_failure(rig):
    rig.faults.append(Fault("write", "*/latest.json", error=AccessDenied.of("no")))
    with capture_logs() as logs:
        assert (await put(rig.committer(), 1)).sequence == 1
    assert "latest.json" in logs[-1]["event"]


async def test_two_agents_that_race_share_the_numbers(rig):
    writers = [ranked(rig, f"w{n}", n) for n in range(4)]
    turns = [put(writer, 10 * n + turn) for turn in range(3) for n, writer in enumerate(writers)]
    found = await asyncio.gather(*turns)
    assert sorted(commit.sequence for commit in found) == list(range(1, 13))
    assert [commit.sequence for commit in rig.store.commits()] == list(range(1, 13))


@pytest.mark.parametrize("failures", [1, 2, 3, 5])
async def test_a_lost_answer_makes_one_commit(rig, failures):
    rig.faults.append(Fault("write", COMMITS, error=LOST, after=True))
    rig.faults.append(Fault("write", COMMITS, times=failures - 1, error=LOST))
    committer = rig.committer()
    for _ in range(3):
        try:
            commit = await put(committer, 1)
            break
        except Unavailable:
            continue
    assert commit.sequence == 1
    assert len(rig.store.commits()) == 1
    assert (await put(committer, 2)).sequence == 2


async def test_without_atomic_creation_the_commit_is_read_back(rig, monkeypatch):
    monkeypatch.setattr(type(rig.store), "exclusive_create", False)
    first, second = ranked(rig, "one", 0), ranked(rig, "two", 1)
    await put(first, 1)
    await put(second, 2)
    write = rig.store.write

    async def overtaken(name, body, mode=WriteMode.OVERWRITE):
        await write(name, body, mode)
        if name.endswith("000000000003.json") and mode is WriteMode.CREATE:
            monkeypatch.setattr(rig.store, "write", write)
            other = msgspec.structs.replace(rig.store.commits()[0], sequence=3, agent_id="three", rank=2)
            rig.content.objects[f"base/{name}"] = encode_commit(other)

    monkeypatch.setattr(rig.store, "write", overtaken)
    assert (await put(first, 3)).sequence == 4


async def test_a_refusal_is_not_retried(rig):
    rig.faults.append(Fault("write", COMMITS, times=9, error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await put(rig.committer(), 1)
    assert sum("/commits/" in name for call, name in rig.content.calls if call == "write") == 1


@pytest.mark.parametrize("order", [{"reserve": 2}, {"below": 4}])
async def test_a_lost_answer_makes_one_commit_with_reserved_numbers_too(rig, order):
    committer = rig.committer()
    await put(committer, 1)
    if "below" in order:
        await put(committer, 4, reserve=2)
    rig.faults.append(Fault("write", COMMITS, error=LOST, after=True, skip=0))
    commit = await put(committer, 3, **order)
    assert [name for _, name in numbers(rig)].count("e3") == 1
    assert commit in rig.store.commits()


async def test_the_later_of_two_agents_takes_over_for_good(rig):
    old, new = rig.committer("old"), rig.committer("new")
    await put(old, 1)
    await put(new, 2)
    before = dict(rig.content.objects)
    for _ in range(2):
        with pytest.raises(Fenced, match=r"new .*created commit 2, e2, at"):
            await old.commit("e3", "e3-31", ())
    with pytest.raises(Fenced):
        await old.write("e3-31/w", b"1")
    assert rig.content.objects == before
    assert (await put(new, 4)).sequence == 3


async def test_a_fenced_agent_stays_fenced_in_a_new_worker(rig):
    await put(rig.committer("old"), 1)
    await put(rig.committer("new"), 2)
    with pytest.raises(Fenced):
        await rig.committer("old").commit("e3", "e3-31", ())


async def test_a_new_worker_of_the_same_pod_continues(rig):
    await put(rig.committer("before"), 1)
    for number in (2, 3, 4):
        assert (await put(rig.committer("same"), number)).sequence == number


async def test_an_agent_that_has_not_committed_is_not_fenced(rig):
    waiting, other = rig.committer("waiting"), rig.committer("other")
    rig.faults.append(Fault("write", COMMITS, times=3, error=LOST))
    with pytest.raises(Unavailable):
        await put(waiting, 1)
    await put(other, 2)
    assert (await put(rig.committer("waiting"), 3)).sequence == 2
    with pytest.raises(Fenced):
        await put(other, 4)


async def test_other_ranks_do_not_fence(rig):
    one, two, unknown = ranked(rig, "one", 0), ranked(rig, "two", 1), rig.committer("three")
    for _ in range(2):
        for number, committer in enumerate((one, two, unknown)):
            await put(committer, number, str(len(rig.store.commits())).encode())
    assert len(rig.store.commits()) == 6


async def overtake(rig, monkeypatch, committer, number, other, other_number, **order):
    """Commit while another agent commits between this one's read and its create."""
    write = rig.store.write

    async def late(name, body, mode=WriteMode.OVERWRITE):
        if mode is WriteMode.CREATE:
            monkeypatch.setattr(rig.store, "write", write)
            await put(other, other_number)
        await write(name, body, mode)

    monkeypatch.setattr(rig.store, "write", late)
    return await put(committer, number, **order)


async def test_a_simultaneous_takeover_is_noticed_by_the_number(rig, monkeypatch):
    old, new = rig.committer("old"), rig.committer("new")
    await put(old, 1)
    with pytest.raises(Fenced):
        await overtake(rig, monkeypatch, old, 2, new, 3)
    assert numbers(rig) == [(1, "e1"), (2, "e3")]


@pytest.mark.parametrize("had_committed", [True, False])
async def test_an_agent_that_reserves_numbers_gives_way_to_a_commit_among_them(
    rig, monkeypatch, had_committed
):
    old, new = rig.committer("old"), rig.committer("new")
    if had_committed:
        await put(old, 1)
    newest = await overtake(rig, monkeypatch, old, 5, new, 3, reserve=3)
    with pytest.raises(Fenced):
        await put(old, 4, below=newest.sequence)
    with pytest.raises(Fenced):
        await put(rig.committer("old"), 4, below=newest.sequence)
    assert (await put(new, 6)).sequence == newest.sequence + 1
    assert (await put(rig.committer("new"), 7)).sequence == newest.sequence + 2


async def test_of_two_simultaneous_drains_one_gives_way(rig, monkeypatch):
    one, two = rig.committer("one"), rig.committer("two")
    write = rig.store.write

    async def late(name, body, mode=WriteMode.OVERWRITE):
        if mode is WriteMode.CREATE:
            monkeypatch.setattr(rig.store, "write", write)
            await put(two, 5, reserve=1)
        await write(name, body, mode)

    monkeypatch.setattr(rig.store, "write", late)
    newest = await put(one, 4, reserve=4)
    with pytest.raises(Fenced):
        await put(one, 3, below=newest.sequence)
    await put(two, 6)


async def test_without_atomic_creation_a_replaced_agent_finds_out(rig, monkeypatch):
    monkeypatch.setattr(type(rig.store), "exclusive_create", False)
    old, new = rig.committer("old"), rig.committer("new")
    await put(old, 1)
    key = "base/run/.podferry/commits/000000000001.json"
    before_replacement = rig.content.objects.pop(key)
    await put(new, 2)
    assert rig.content.objects[key] != before_replacement
    with pytest.raises(Fenced, match="new"):
        await put(old, 3)


async def test_the_check_before_each_try_can_refuse(rig, monkeypatch):
    checks = []

    async def check():
        checks.append(len(rig.store.commits()))
        if len(checks) == 2:
            raise Superseded.of("too late")

    one, two = ranked(rig, "one", 0), ranked(rig, "two", 1)
    with pytest.raises(Superseded, match="too late"):
        await overtake(rig, monkeypatch, one, 1, two, 2, check=check)
    assert checks == [0, 1]
    assert numbers(rig) == [(1, "e2")]

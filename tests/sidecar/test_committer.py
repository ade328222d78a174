import asyncio
import hashlib

import msgspec
import pytest
from structlog.testing import capture_logs

from podferry.contract.commit import CommittedFile, decode_commit
from podferry.contract.errors import AccessDenied, NotFound, Unavailable
from podferry.storage.memory import Fault
from podferry.storage.store import WriteMode

LOST = Unavailable.of("the connection was reset")
COMMITS = "*/commits/*"


async def put(committer, number, content=b"1"):
    """Send and commit one checkpoint of one file."""
    folder = f"e{number}-{content.hex()}"
    await committer.write(f"{folder}/w", content)
    file = CommittedFile("w", f"{folder}/w", len(content), hashlib.sha256(content).hexdigest())
    return await committer.commit(f"e{number}", folder, (file,))


async def test_numbers_have_no_gaps_and_go_on_after_a_restart(rig):
    committer = rig.committer()
    assert [(await put(committer, n)).sequence for n in (1, 2)] == [1, 2]
    assert (await put(rig.committer("two"), 3)).sequence == 3


async def test_latest_is_a_copy_of_the_newest_commit(rig):
    commit = await put(rig.committer(), 1)
    assert decode_commit(rig.content.objects["base/run/.podferry/latest.json"], "x") == commit


async def test_a_hint_that_cannot_be_written_is_no_failure(rig):
    rig.faults.append(Fault("write", "*/latest.json", error=AccessDenied.of("no")))
    with capture_logs() as logs:
        assert (await put(rig.committer(), 1)).sequence == 1
    assert "latest.json" in logs[-1]["event"]


async def test_two_writers_that_race_share_the_numbers(rig):
    writers = [rig.committer(f"w{n}") for n in range(4)]
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


async def test_a_number_that_holds_no_commit_is_left_alone(rig):
    committer = rig.committer()
    await put(committer, 1)
    key = "base/run/.podferry/commits/000000000002.json"
    rig.store._check = lambda before: None
    rig.content.objects[key] = b"somebody's note"
    assert (await put(committer, 2)).sequence == 3
    assert rig.content.objects[key] == b"somebody's note"


async def test_where_creating_is_not_atomic_the_commit_is_read_back(rig, monkeypatch):
    monkeypatch.setattr(type(rig.store), "exclusive_create", False)
    first, second = rig.committer("one"), rig.committer("two")
    await put(first, 1)
    await put(second, 2)
    write = rig.store.write

    async def overtaken(name, body, mode=WriteMode.OVERWRITE):
        await write(name, body, mode)
        if name.endswith("000000000003.json") and mode is WriteMode.CREATE:
            monkeypatch.setattr(rig.store, "write", write)
            other = msgspec.structs.replace(rig.store.commits()[0], sequence=3, writer="three")
            rig.content.objects[f"base/{name}"] = msgspec.json.encode(other)

    monkeypatch.setattr(rig.store, "write", overtaken)
    assert (await put(first, 3)).sequence == 4


async def test_a_refusal_is_not_tried_again(rig):
    rig.faults.append(Fault("write", COMMITS, times=9, error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await put(rig.committer(), 1)
    assert sum("/commits/" in name for call, name in rig.content.calls if call == "write") == 1


async def test_announcing_finds_out_whether_writing_works(rig):
    committer = rig.committer("me")
    rig.faults.append(Fault("write", error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await committer.announce()
    await committer.announce()
    note = msgspec.json.decode(rig.content.objects["base/run/.podferry/writer.json"])
    assert (note["writer"], note["run"]) == ("me", None)


async def test_the_same_content_is_found_among_earlier_commits(rig):
    commit = await put(rig.committer(), 1)
    assert await rig.committer("two").earlier(commit.checkpoint) == commit
    assert await rig.committer("two").earlier("e1-ff") is None
    await rig.store.write("run/e9-00/w", b"never committed")
    assert await rig.committer("two").earlier("e9-00") is None


async def test_a_commit_whose_data_has_gone_does_not_count(rig):
    commit = await put(rig.committer(), 1)
    rig.content.objects.pop(f"base/run/{commit.checkpoint}/w")
    assert await rig.committer("two").earlier(commit.checkpoint) is None
    with pytest.raises(NotFound):
        await rig.store.read(f"run/{commit.checkpoint}/w")

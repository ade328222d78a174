import msgspec
import pytest
from structlog.testing import capture_logs

from podferry.contract.destination.commit import CommittedFile
from podferry.contract.errors import Corrupt, FormatTooNew, Unavailable
from podferry.sidecar.checkpoint.commit.commit_reader import (
    READ_ATTEMPTS,
    CommitReader,
    committed_lineages,
)
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.memory.store import Fault

KEY = "base/run/.podferry/commits/{:012d}.json"


@pytest.fixture
async def three(rig):
    """A reader of three commits of one file each."""
    committer = rig.committer()
    for number in (1, 2, 3):
        await committer.write(f"e{number}-00/w", b"%d" % number)
        file = CommittedFile("w", f"e{number}-00/w", 1, "0" * 64)
        await committer.commit(f"e{number}", f"e{number}-00", (file,))
    return committer.reader


@pytest.fixture
def rig(rig, monkeypatch):
    """A rig whose store does not check: these tests break things on purpose."""
    monkeypatch.setattr(type(rig.store), "check", lambda *_: None)
    return rig


async def names(reader):
    return [commit.name async for commit in reader.newest_first()]


async def test_lineages_are_those_with_commits(three, rig):
    rig.content.objects["base/other/e1-00/w"] = b"data without a commit"
    rig.content.objects["base/file"] = b""
    assert await committed_lineages(rig.store) == ["run"]
    assert await three.sequences() == [1, 2, 3]
    assert await CommitReader(LineageStore(rig.store, "other")).sequences() == []


async def test_commits_come_newest_first(three):
    assert await names(three) == ["e3", "e2", "e1"]


async def test_damaged_commits_are_skipped_and_logged(three, rig):
    rig.content.objects[KEY.format(3)] = b"{"
    rig.faults.append(Fault("read", "*2.json", corrupt=2, times=READ_ATTEMPTS))
    with capture_logs() as logs:
        assert await names(three) == ["e1"]
    assert [(log["log_level"], log["sequence"]) for log in logs] == [("warning", 3), ("warning", 2)]


async def test_one_bad_response_hides_no_commit(three, rig):
    rig.faults.append(Fault("read", "*3.json", corrupt=2, times=READ_ATTEMPTS - 1))
    assert (await names(three))[0] == "e3"


async def test_a_copy_of_another_commit_is_corrupt(three, rig):
    rig.content.objects[KEY.format(4)] = rig.content.objects[KEY.format(3)]
    with pytest.raises(Corrupt, match="a copy of another commit"):
        await three.read(4)


async def test_a_commit_of_a_later_podferry_is_not_skipped(three, rig):
    rig.content.objects[KEY.format(4)] = b'{"format": 3}'
    with pytest.raises(FormatTooNew):
        await names(three)


async def test_an_unreachable_store_is_not_damage(three, rig):
    rig.faults.append(Fault("read", error=Unavailable.of("no route")))
    with pytest.raises(Unavailable):
        await names(three)


async def test_missing_objects_are_absent_or_of_another_size(three, rig):
    commit = await three.read(1)
    assert await three.missing_objects(commit) == []
    files = (commit.files[0], CommittedFile("v", "e1-00/v", 1, "0" * 64))
    rig.content.objects["base/run/e1-00/w"] = b"longer"
    found = await three.missing_objects(msgspec.structs.replace(commit, files=files))
    assert [problem.what for problem in found] == ["w has the wrong size", "v is missing"]


async def test_gaps_are_skipped_silently(three, rig):
    del rig.content.objects[KEY.format(2)]
    with capture_logs() as logs:
        assert await names(three) == ["e3", "e1"]
    assert logs == []


async def test_files_of_several_ranks_are_distinguished(three, rig):
    commit = await three.read(1)
    files = tuple(CommittedFile("w", f"part-{rank}/w", 1, str(rank) * 32, rank) for rank in (0, 1))
    rig.content.objects["base/run/part-0/w"] = b"1"
    found = await three.missing_objects(msgspec.structs.replace(commit, files=files))
    assert [problem.what for problem in found] == ["w of rank 1 is missing"]

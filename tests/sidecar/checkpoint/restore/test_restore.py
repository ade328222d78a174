import os

import msgspec
import pytest
import xxhash
from structlog.testing import capture_logs

from podferry.contract.commit import CommittedFile, commit_name, encode_commit
from podferry.contract.errors import Changed, FormatTooNew, NotFound, Refused, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.restore.restore import (
    RestoreSource,
    restore,
    restore_source_of,
    restored_status,
)
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds
from podferry.storage.memory.store import CONTENTS, Fault, MemoryStore
from podferry.storage.store import StoreConfig


@pytest.fixture
def target(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


@pytest.fixture
async def rig(rig, monkeypatch):
    """A rig with three commits: epoch-1, epoch-2 (a directory of two files), last."""
    uploader, pins = rig.uploader(), HardlinkHolds(rig.pins)
    rig.write("epoch-1.bin", b"1" * 3000)
    rig.write("epoch-2/a.bin", b"2" * 3000)
    rig.write("epoch-2/deep/b.bin", b"")
    rig.write("last.bin", b"3" * 3000)
    for name in ("epoch-1", "epoch-2", "last"):
        await uploader.upload(pins.link(scan_checkpoints(rig.root)[1][name], rig.root, 1.0))
    monkeypatch.setitem(CONTENTS, "rig", rig.content)
    return rig


@pytest.fixture
def bring(rig, target, tmp_path):
    """Restore what a wish means to the target; the name of what came."""

    async def bring(wish="auto", lineage="run"):
        own = CommitReader(LineageStore(MemoryStore(parse_uri("memory://rig/base"), rig.content), lineage))
        source = await restore_source_of(wish, own, StoreConfig())
        found = await restore(source, target, tmp_path / "aside") if source else None
        return found[0].name if found else None

    return bring


def key(rig, name):
    """The key of a committed file's object."""
    found = [
        f"base/run/{file.object}"
        for commit in rig.store.commits()
        for file in commit.files
        if file.name == name
    ]
    return found[-1]


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("auto", "last"),
        ("latest", "last"),
        ("never", None),
        ("epoch-1", "epoch-1"),
        ("memory://rig/base/run", "last"),
    ],
)
async def test_a_wish_says_which(bring, wish, name):
    assert await bring(wish) == name


async def test_a_folder_of_a_lineage_is_a_warm_start(rig, bring):
    folder = rig.store.commits()[1].checkpoint
    assert await bring(f"memory://rig/base/run/{folder}", lineage="other") == "epoch-2"
    assert await bring(folder) == "epoch-2"


async def test_what_comes_is_whole_and_anybodys(rig, bring, target, tmp_path):
    old = os.umask(0o077)
    try:
        await bring("epoch-2")
    finally:
        os.umask(old)
    assert (target / "epoch-2" / "a.bin").read_bytes() == b"2" * 3000
    assert (target / "epoch-2" / "deep" / "b.bin").read_bytes() == b""
    modes = {str(p.relative_to(target)): p.stat().st_mode & 0o7777 for p in target.rglob("*")}
    assert modes == {
        "epoch-2": 0o777,
        "epoch-2/a.bin": 0o666,
        "epoch-2/deep": 0o777,
        "epoch-2/deep/b.bin": 0o666,
    }
    assert not (tmp_path / "aside").exists()


def flipped(objects, name):
    data = bytearray(objects[name])
    data[1500] ^= 1
    objects[name] = bytes(data)


DAMAGES = {
    "a byte flipped": flipped,
    "missing": lambda objects, name: objects.pop(name),
    "truncated": lambda objects, name: objects.update({name: objects[name][:-1]}),
    "appended to": lambda objects, name: objects.update({name: objects[name] + b"xx"}),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_falls_back_to_the_one_before_and_says_so(rig, bring, target, damage):
    DAMAGES[damage](rig.content.objects, key(rig, "last.bin"))
    with capture_logs() as logs:
        assert await bring() == "epoch-2"
    *again, told = [log for log in logs if log["log_level"] == "warning"]
    assert "trying the one before" in told["event"]
    assert all("fetching again" in log["event"] for log in again)
    assert told["name"] == "last"
    assert not (target / "last.bin").exists()


async def test_one_damaged_answer_costs_no_checkpoint(rig, bring):
    rig.faults.append(Fault("read", "*last.bin", corrupt=3))
    assert await bring() == "last"


async def test_one_damaged_file_brings_none_of_its_checkpoint(rig, bring, target):
    DAMAGES["missing"](rig.content.objects, key(rig, "last.bin"))
    DAMAGES["a byte flipped"](rig.content.objects, key(rig, "epoch-2/a.bin"))
    assert await bring() == "epoch-1"
    assert [path.name for path in target.iterdir()] == ["epoch-1.bin"]


async def test_where_all_are_damaged_auto_starts_anew_and_latest_refuses(rig, bring):
    for name in ("last.bin", "epoch-2/a.bin", "epoch-1.bin"):
        DAMAGES["missing"](rig.content.objects, key(rig, name))
    assert await bring("auto") is None
    with pytest.raises(NotFound) as caught:
        await bring("latest")
    assert len(caught.value.problems) == 3


async def test_a_store_that_does_not_answer_is_no_reason_to_fall_back(rig, bring, target):
    down = Fault("read", "*last.bin", times=99, error=Unavailable.of("no route"))
    rig.faults.append(down)
    with pytest.raises(Unavailable):
        await bring()
    assert list(target.iterdir()) == []
    rig.faults.remove(down)
    assert await bring() == "last"


async def test_a_later_format_refuses(rig, bring):
    rig.content.objects["base/run/.podferry/commits/000000000004.json"] = b'{"format": 2}'
    with pytest.raises(FormatTooNew):
        await bring()


async def test_another_version_that_lies_there_refuses(bring, target):
    (target / "last.bin").write_bytes(b"9" * 3000)
    with pytest.raises(Refused, match="not the version that would be restored"):
        await bring()
    assert (target / "last.bin").read_bytes() == b"9" * 3000


@pytest.mark.parametrize("kind", ["directory", "link", "parent"])
async def test_what_is_no_file_refuses_too(bring, target, kind):
    if kind == "directory":
        (target / "last.bin").mkdir()
    elif kind == "link":
        (target / "last.bin").symlink_to("gone")
    else:
        (target / "epoch-2").write_bytes(b"a file")
    with pytest.raises(Refused):
        await bring("epoch-2" if kind == "parent" else "auto")


async def test_the_same_file_is_kept_and_not_fetched(rig, bring, target):
    (target / "epoch-2").mkdir()
    (target / "epoch-2" / "a.bin").write_bytes(b"2" * 3000)
    before = (target / "epoch-2" / "a.bin").stat()
    assert await bring("epoch-2") == "epoch-2"
    assert (target / "epoch-2" / "a.bin").stat().st_ino == before.st_ino
    assert not any(call == "read" and name.endswith("a.bin") for call, name in rig.content.calls)


class Rewriting(MemoryStore):
    """Somebody writes an object anew between the first look and the first read."""

    times = 1
    content_changes = False

    async def read(self, name, start=0, length=None, tag="", size=None):
        if name.endswith("last.bin") and self.times:
            self.times -= 1
            self.content.objects[f"base/{name}"] = b"4" * 3000 if self.content_changes else b"3" * 3000
            raise Changed.of("another tag")
        return await super().read(name, start, length, tag, size)


@pytest.mark.parametrize(
    ("times", "content_changes", "name"), [(1, False, "last"), (1, True, "epoch-2"), (9, False, "epoch-2")]
)
async def test_an_object_that_changes_is_looked_at_once_more(
    rig, target, tmp_path, times, content_changes, name
):
    store = Rewriting(parse_uri("memory://rig/base"), rig.content)
    store.times, store.content_changes = times, content_changes
    found = await restore(RestoreSource(CommitReader(LineageStore(store, "run"))), target, tmp_path / "aside")
    assert found[0].name == name
    assert not (tmp_path / "aside").exists()


async def with_ranks(rig):
    """A fourth commit: ranks 0 and 1 have each a `state.bin`, and share `all.bin`."""
    files = [("all.bin", None, b"shared"), ("state.bin", 0, b"zero"), ("state.bin", 1, b"first")]
    listed = []
    for name, rank, data in files:
        place = f"gang-0/{rank}/{name}"
        await rig.store.write(f"run/{place}", data)
        listed.append(CommittedFile(name, place, len(data), xxhash.xxh3_128_hexdigest(data), rank))
    commit = msgspec.structs.replace(
        rig.store.commits()[-1], sequence=4, name="gang", checkpoint="gang-0", files=tuple(listed), world=2
    )
    await rig.store.write(f"run/{commit_name(4)}", encode_commit(commit))


@pytest.mark.parametrize(
    ("rank", "data", "said"),
    [(1, b"first", []), (0, b"zero", []), (5, b"zero", [5]), (None, b"zero", [None])],
)
async def test_a_rank_gets_its_own_files_and_what_stands_in_is_told(rig, target, tmp_path, rank, data, said):
    await with_ranks(rig)
    with capture_logs() as logs:
        commit, seconds = await restore(
            RestoreSource(CommitReader(LineageStore(rig.store, "run"))), target, tmp_path / "aside", rank
        )
    assert (target / "state.bin").read_bytes() == data
    assert (target / "all.bin").read_bytes() == b"shared"
    told = [log for log in logs if log["log_level"] == "warning"]
    assert [log["rank"] for log in told] == said
    assert all((log["ranks"], log["files"]) == ([0], ["state.bin"]) for log in told)
    assert restored_status(commit, seconds).bytes == 6 + len(data)


async def test_a_damaged_file_of_another_rank_does_not_matter(rig, target, tmp_path):
    await with_ranks(rig)
    DAMAGES["missing"](rig.content.objects, "base/run/gang-0/0/state.bin")
    source = RestoreSource(CommitReader(LineageStore(rig.store, "run")))
    assert (await restore(source, target, tmp_path / "aside", 1))[0].name == "gang"


async def test_without_any_commit_auto_starts_anew(bring):
    assert await bring(lineage="new") is None


@pytest.mark.parametrize(
    ("wish", "lineage", "said"),
    [
        ("latest", "rum", "run"),
        ("epoch-3", "run", "epoch-2"),
        ("memory://rig/base/rum", "x", "run"),
        ("memory://rig/base/run/epoch-11-00", "x", "epoch-1"),
    ],
)
async def test_what_is_not_there_is_told_with_what_is(bring, wish, lineage, said):
    with pytest.raises(NotFound, match=said):
        await bring(wish, lineage)


async def test_a_commit_that_would_leave_the_directory_is_passed_over(rig, bring):
    commit = rig.store.commits()[-1]
    bad = msgspec.structs.replace(commit, files=(msgspec.structs.replace(commit.files[0], name="../x"),))
    rig.content.objects["base/run/.podferry/commits/000000000003.json"] = msgspec.json.encode(bad)
    assert await bring() == "epoch-2"


@pytest.mark.parametrize(("index", "path"), [(0, "epoch-1.bin"), (1, "epoch-2")])
async def test_the_trainer_is_told_a_path(rig, index, path):
    status = restored_status(rig.store.commits()[index], 1.5)
    assert (status.path, status.sequence, status.seconds) == (path, index + 1, 1.5)


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"e-1.npz": 3000, "latest": 3}, "e-1.npz"),
        ({"e-1/a.bin": 1, "e-1/b.bin": 1, "checkpoint": 3, "latest": 3}, "e-1"),
        ({"e-1.pdparams": 3000, "e-1.pdopt": 3000, "latest": 3}, "e-1"),
        ({"e-1.npz": 3000, "latest": 5000}, "e-1"),
        ({"latest": 3}, "latest"),
    ],
)
async def test_a_pointer_is_no_part_of_the_path(rig, files, path):
    listed = tuple(CommittedFile(name, f"f/{name}", size, "0" * 64) for name, size in files.items())
    commit = msgspec.structs.replace(rig.store.commits()[0], name="e-1", files=listed)
    assert restored_status(commit, 1.0).path == path


@pytest.mark.parametrize("damage", ["missing", "truncated", "appended to"])
async def test_what_restore_passes_over_verify_calls_damaged(rig, bring, damage):
    DAMAGES[damage](rig.content.objects, key(rig, "last.bin"))
    assert await CommitReader(LineageStore(rig.store, "run")).missing_objects(rig.store.commits()[-1])
    assert await bring() == "epoch-2"


async def test_an_empty_file_that_has_gone_or_grown_is_damage_too(rig, bring):
    rig.content.objects[key(rig, "epoch-2/deep/b.bin")] = b"x"
    DAMAGES["missing"](rig.content.objects, key(rig, "last.bin"))
    assert await bring() == "epoch-1"


async def test_a_source_of_several_versions_of_a_name_gives_the_newest_first(rig):
    uploader, pins = rig.uploader(), HardlinkHolds(rig.pins)
    rig.write("last.bin", b"4" * 3000)
    await uploader.upload(pins.link(scan_checkpoints(rig.root)[1]["last"], rig.root, 1.0))
    source = RestoreSource(CommitReader(LineageStore(rig.store, "run")), name="last")
    assert [commit.sequence for commit in await source.commits()] == [4, 3]

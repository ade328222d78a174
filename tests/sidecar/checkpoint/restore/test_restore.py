import os

import msgspec
import pytest
import xxhash
from structlog.testing import capture_logs

from podferry.contract.destination.commit import CommittedFile, commit_name, encode_commit
from podferry.contract.errors import Changed, FormatTooNew, NotFound, Refused, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.restore.choice import RestoreSource, restore_source_of
from podferry.sidecar.checkpoint.restore.restore import RestoreOutcome, restore, restored_status
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
    uploader, holds = rig.uploader(), HardlinkHolds(rig.holds)
    rig.write("epoch-1.bin", b"1" * 3000)
    rig.write("epoch-2/a.bin", b"2" * 3000)
    rig.write("epoch-2/deep/b.bin", b"")
    rig.write("last.bin", b"3" * 3000)
    for name in ("epoch-1", "epoch-2", "last"):
        await uploader.upload(holds.link(scan_checkpoints(rig.root)[1][name], rig.root, 1.0))
    monkeypatch.setitem(CONTENTS, "rig", rig.content)
    return rig


@pytest.fixture
def run_restore(rig, target, tmp_path):
    """Restore the checkpoint that a setting names; returns its name."""

    async def run_restore(setting="auto", lineage="run"):
        own = CommitReader(LineageStore(MemoryStore(parse_uri("memory://rig/base"), rig.content), lineage))
        source = await restore_source_of(setting, own, StoreConfig())
        found = await restore(source, target, tmp_path / "staging") if source else RestoreOutcome()
        return found.commit.name if found.commit else None

    return run_restore


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
    ("setting", "name"),
    [
        ("auto", "last"),
        ("latest", "last"),
        ("never", None),
        ("epoch-1", "epoch-1"),
        ("memory://rig/base/run", "last"),
    ],
)
async def test_the_setting_selects_the_checkpoint(run_restore, setting, name):
    assert await run_restore(setting) == name


async def test_a_folder_of_a_lineage_is_a_warm_start(rig, run_restore):
    folder = rig.store.commits()[1].checkpoint
    assert await run_restore(f"memory://rig/base/run/{folder}", lineage="other") == "epoch-2"
    assert await run_restore(folder) == "epoch-2"


async def test_restored_files_are_complete_and_writable_by_anyone(rig, run_restore, target, tmp_path):
    old = os.umask(0o077)
    try:
        await run_restore("epoch-2")
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
    assert not (tmp_path / "staging").exists()


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
async def test_damage_falls_back_to_the_previous_checkpoint_and_is_logged(rig, run_restore, target, damage):
    DAMAGES[damage](rig.content.objects, key(rig, "last.bin"))
    with capture_logs() as logs:
        assert await run_restore() == "epoch-2"
    *again, logged = [log for log in logs if log["log_level"] == "warning"]
    assert "trying the one before" in logged["event"]
    assert all("fetching damaged files again" in log["event"] for log in again)
    assert logged["name"] == "last"
    assert not (target / "last.bin").exists()


async def test_damaged_objects_are_listed_and_those_that_were_verified_are_not(rig, target, tmp_path):
    commits, unharmed = rig.store.commits(), key(rig, "epoch-1.bin")
    shared = msgspec.structs.replace(commits[0].files[0], name="frozen.bin")
    newest = msgspec.structs.replace(commits[2], files=(shared, *commits[2].files))
    rig.content.objects[f"base/run/{commit_name(3)}"] = encode_commit(newest)
    flipped(rig.content.objects, key(rig, "last.bin"))
    DAMAGES["missing"](rig.content.objects, key(rig, "epoch-2/a.bin"))
    reader = CommitReader(LineageStore(MemoryStore(parse_uri("memory://rig/base"), rig.content), "run"))
    found = await restore(RestoreSource(reader), target, tmp_path / "staging")
    assert found.commit.name == "epoch-1"
    assert unharmed == f"base/run/{shared.object}"
    assert found.damaged == {newest.files[1].object}


async def test_one_damaged_response_costs_no_checkpoint(rig, run_restore):
    rig.faults.append(Fault("read", "*last.bin", corrupt=3))
    assert await run_restore() == "last"


async def test_one_damaged_file_restores_none_of_its_checkpoint(rig, run_restore, target):
    DAMAGES["missing"](rig.content.objects, key(rig, "last.bin"))
    DAMAGES["a byte flipped"](rig.content.objects, key(rig, "epoch-2/a.bin"))
    assert await run_restore() == "epoch-1"
    assert [path.name for path in target.iterdir()] == ["epoch-1.bin"]


async def test_if_all_are_damaged_auto_starts_from_scratch_and_latest_refuses(rig, run_restore):
    for name in ("last.bin", "epoch-2/a.bin", "epoch-1.bin"):
        DAMAGES["missing"](rig.content.objects, key(rig, name))
    assert await run_restore("auto") is None
    with pytest.raises(NotFound) as caught:
        await run_restore("latest")
    assert len(caught.value.problems) == 3


async def test_a_store_that_does_not_answer_is_no_reason_to_fall_back(rig, run_restore, target):
    down = Fault("read", "*last.bin", times=99, error=Unavailable.of("no route"))
    rig.faults.append(down)
    with pytest.raises(Unavailable):
        await run_restore()
    assert list(target.iterdir()) == []
    rig.faults.remove(down)
    assert await run_restore() == "last"


async def test_a_later_format_refuses(rig, run_restore):
    rig.content.objects["base/run/.podferry/commits/000000000004.json"] = b'{"format": 3}'
    with pytest.raises(FormatTooNew):
        await run_restore()


async def test_another_version_in_the_directory_is_refused(run_restore, target):
    (target / "last.bin").write_bytes(b"9" * 3000)
    with pytest.raises(Refused, match="not the version to restore"):
        await run_restore()
    assert (target / "last.bin").read_bytes() == b"9" * 3000


@pytest.mark.parametrize("kind", ["directory", "link", "parent"])
async def test_a_directory_entry_that_is_not_a_file_is_refused(run_restore, target, kind):
    if kind == "directory":
        (target / "last.bin").mkdir()
    elif kind == "link":
        (target / "last.bin").symlink_to("gone")
    else:
        (target / "epoch-2").write_bytes(b"a file")
    with pytest.raises(Refused):
        await run_restore("epoch-2" if kind == "parent" else "auto")


async def test_the_same_file_is_kept_and_not_fetched(rig, run_restore, target):
    (target / "epoch-2").mkdir()
    (target / "epoch-2" / "a.bin").write_bytes(b"2" * 3000)
    before = (target / "epoch-2" / "a.bin").stat()
    assert await run_restore("epoch-2") == "epoch-2"
    assert (target / "epoch-2" / "a.bin").stat().st_ino == before.st_ino
    assert not any(call == "read" and name.endswith("a.bin") for call, name in rig.content.calls)


class Rewriting(MemoryStore):
    """Replaces an object between the first stat and the first read."""

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
async def test_an_object_that_changes_is_read_again(rig, target, tmp_path, times, content_changes, name):
    store = Rewriting(parse_uri("memory://rig/base"), rig.content)
    store.times, store.content_changes = times, content_changes
    found = await restore(
        RestoreSource(CommitReader(LineageStore(store, "run"))), target, tmp_path / "staging"
    )
    assert found.commit.name == name
    assert not (tmp_path / "staging").exists()


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
async def test_a_rank_gets_its_own_files_and_substitutes_are_logged(rig, target, tmp_path, rank, data, said):
    await with_ranks(rig)
    with capture_logs() as logs:
        found = await restore(
            RestoreSource(CommitReader(LineageStore(rig.store, "run"))), target, tmp_path / "staging", rank
        )
    assert (target / "state.bin").read_bytes() == data
    assert (target / "all.bin").read_bytes() == b"shared"
    logged = [log for log in logs if log["log_level"] == "warning"]
    assert [log["rank"] for log in logged] == said
    assert all((log["ranks"], log["files"]) == ([0], ["state.bin"]) for log in logged)
    assert restored_status(found.commit, found.seconds).bytes == 6 + len(data)


async def test_a_damaged_file_of_another_rank_does_not_matter(rig, target, tmp_path):
    await with_ranks(rig)
    DAMAGES["missing"](rig.content.objects, "base/run/gang-0/0/state.bin")
    source = RestoreSource(CommitReader(LineageStore(rig.store, "run")))
    assert (await restore(source, target, tmp_path / "staging", 1)).commit.name == "gang"


async def test_without_any_commit_auto_starts_from_scratch(run_restore):
    assert await run_restore(lineage="new") is None


@pytest.mark.parametrize(
    ("setting", "lineage", "said"),
    [
        ("latest", "rum", "run"),
        ("epoch-3", "run", "epoch-2"),
        ("memory://rig/base/rum", "x", "run"),
        ("memory://rig/base/run/epoch-11-00", "x", "epoch-1"),
    ],
)
async def test_a_missing_checkpoint_is_reported_with_the_existing_ones(run_restore, setting, lineage, said):
    with pytest.raises(NotFound, match=said):
        await run_restore(setting, lineage)


async def test_a_commit_with_paths_outside_the_directory_is_skipped(rig, run_restore):
    commit = rig.store.commits()[-1]
    bad = msgspec.structs.replace(commit, files=(msgspec.structs.replace(commit.files[0], name="../x"),))
    rig.content.objects["base/run/.podferry/commits/000000000003.json"] = msgspec.json.encode(bad)
    assert await run_restore() == "epoch-2"


@pytest.mark.parametrize(("index", "path"), [(0, "epoch-1.bin"), (1, "epoch-2")])
async def test_the_status_has_the_path_of_the_data(rig, index, path):
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
async def test_pointer_files_do_not_affect_the_path(rig, files, path):
    listed = tuple(CommittedFile(name, f"f/{name}", size, "0" * 64) for name, size in files.items())
    commit = msgspec.structs.replace(rig.store.commits()[0], name="e-1", files=listed)
    assert restored_status(commit, 1.0).path == path


@pytest.mark.parametrize("damage", ["missing", "truncated", "appended to"])
async def test_verify_reports_what_restore_skips(rig, run_restore, damage):
    DAMAGES[damage](rig.content.objects, key(rig, "last.bin"))
    assert await CommitReader(LineageStore(rig.store, "run")).missing_objects(rig.store.commits()[-1])
    assert await run_restore() == "epoch-2"


async def test_an_empty_file_that_is_missing_or_has_grown_is_damage(rig, run_restore):
    rig.content.objects[key(rig, "epoch-2/deep/b.bin")] = b"x"
    DAMAGES["missing"](rig.content.objects, key(rig, "last.bin"))
    assert await run_restore() == "epoch-1"

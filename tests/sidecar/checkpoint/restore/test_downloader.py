import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import stamina
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.commit import FORMAT, Commit, CommittedFile, commit_name, encode_commit
from podferry.contract.errors import Changed, Corrupt, NotFound, Refused, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.downloader import CommitDownloader, bytes_to_restore, for_rank
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.storage.local.store import LocalStore
from podferry.storage.memory.store import Content, Fault, MemoryStore

RANGE = 1000
SMALL = PrefetchSettings(in_flight=8, range_bytes=RANGE, buffer_bytes=4 * RANGE, attempts=2)
FILES = {"e/empty": b"", "e/one": b"1", "e/d/many": os.urandom(9 * RANGE + 13), "latest": b"e"}
COMMIT = Commit(FORMAT, 1, "run", "e-1", "e", None, datetime(2026, 1, 1, tzinfo=UTC), (), "w")


@pytest.fixture(autouse=True)
def no_waiting():
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


def listed(name, data, rank=None):
    return CommittedFile(name, f"e-1/{rank or 0}/{name}", len(data), xxhash.xxh3_128_hexdigest(data), rank)


@pytest.fixture
def commit():
    files = tuple(sorted(listed(name, data) for name, data in FILES.items()))
    return msgspec.structs.replace(COMMIT, files=files)


@pytest.fixture
def store(commit):
    made = MemoryStore(parse_uri("memory://bring/base"), Content())
    made.content.objects = {f"base/run/{file.object}": FILES[file.name] for file in commit.files}
    return made


@pytest.fixture
def places(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target", tmp_path / "aside"


def held(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def reads(store):
    return [name for call, name in store.content.calls if call == "read"]


async def interrupted(store, commit, places):
    """A call that ends when two files are whole aside; why."""
    down = Fault("read", "*latest", times=99, error=Unavailable.of("no route"))
    store.faults.append(down)
    one_by_one = msgspec.structs.replace(SMALL, in_flight=1)
    with pytest.raises(Unavailable):
        await CommitDownloader(LineageStore(store, "run"), settings=one_by_one).bring(commit, *places)
    return down


def damage(store, name, at):
    (key,) = [key for key in store.content.objects if key.endswith(name)]
    data = bytearray(store.content.objects[key])
    data[at] ^= 1
    store.content.objects[key] = bytes(data)


async def test_files_come_in_ranges_within_one_bound(store, commit, places):
    most, now = 0, 0

    class Counting(MemoryStore):
        async def read(self, name, start=0, length=None, tag="", size=None):
            nonlocal most, now
            assert tag
            now += length
            most = max(most, now)
            for _ in range(1 + start % 7):  # so that ranges come in another order
                await asyncio.sleep(0)
            now -= length
            return await super().read(name, start, length, tag, size)

    told = []
    counting = Counting(store.uri, store.content)
    bringer = CommitDownloader(
        LineageStore(counting, "run"), lambda done, total: told.append((done, total)), SMALL
    )
    await bringer.bring(commit, *places)
    assert held(places[0]) == FILES
    assert len(reads(store)) == 12
    assert 3 * RANGE < most <= SMALL.buffer_bytes
    assert (told[0], told[-1]) == ((0, commit.bytes), (commit.bytes, commit.bytes))
    assert told == sorted(told)
    assert not places[1].exists()


@pytest.mark.parametrize(("name", "at"), [("one", 0), ("many", 0), ("many", 5 * RANGE), ("many", -1)])
async def test_a_byte_that_differs_brings_nothing(store, commit, places, name, at):
    damage(store, name, at)
    with pytest.raises(Corrupt, match=f"{name} is damaged.*xxh128"):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).bring(commit, *places)
    assert held(places[0]) == {}


@pytest.mark.parametrize("name", ["one", "many"])
async def test_a_wire_that_lies_once_costs_one_range(store, commit, places, name):
    store.faults.append(Fault("read", f"*{name}", skip=4 * (name == "many"), corrupt=17))
    await CommitDownloader(LineageStore(store, "run"), settings=SMALL).bring(commit, *places)
    assert held(places[0]) == FILES


async def test_a_wire_that_always_lies_brings_nothing(store, commit, places):
    store.faults.append(Fault("read", "*many", times=999, corrupt=17))
    with pytest.raises(Corrupt, match="many is damaged"):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).bring(commit, *places)
    assert held(places[0]) == {}


async def test_no_byte_moves_where_an_object_is_missing(store, commit, places):
    await store.delete([f"run/{commit.files[0].object}"])
    with pytest.raises(NotFound):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).bring(commit, *places)
    assert reads(store) == []


async def test_an_object_that_changes_meanwhile_is_noticed(store, commit, places):
    class Changing(MemoryStore):
        async def read(self, name, start=0, length=None, tag="", size=None):
            if start == 3 * RANGE:
                damage(store, "many", 0)
            return await super().read(name, start, length, tag, size)

    with pytest.raises(Changed):
        await CommitDownloader(LineageStore(Changing(store.uri, store.content), "run"), settings=SMALL).bring(
            commit, *places
        )
    assert held(places[0]) == {}


async def test_ranges_are_tried_again_by_themselves(store, commit, places):
    store.faults.append(Fault("read", "*many", skip=4, error=Unavailable.of("reset")))
    await CommitDownloader(LineageStore(store, "run"), settings=SMALL).bring(commit, *places)
    assert len(reads(store)) == 13


async def test_the_next_call_goes_on_from_what_is_whole(store, commit, places):
    down = await interrupted(store, commit, places)
    assert held(places[0]) == {}
    assert "e/one" in held(places[1] / "files")
    store.faults.remove(down)
    store.content.calls.clear()
    told = []
    await CommitDownloader(LineageStore(store, "run"), lambda done, total: told.append(done), SMALL).bring(
        commit, *places
    )
    assert held(places[0]) == FILES
    assert [name.rpartition("/")[2] for name in reads(store)] == ["latest"]
    assert told[0] == commit.bytes - 1


async def test_what_waits_aside_for_another_commit_makes_room(store, commit, places):
    await interrupted(store, commit, places)
    file = listed("other", b"xyz")
    store.content.objects[f"base/run/{file.object}"] = b"xyz"
    other = msgspec.structs.replace(COMMIT, files=(file,))
    seen = []
    told = lambda done, total: seen.append(held(places[1] / "files"))  # noqa: E731
    await CommitDownloader(LineageStore(store, "run"), told, SMALL).bring(other, *places)
    assert seen[0] == {}
    assert held(places[0]) == {"other": b"xyz"}


async def test_a_file_aside_that_is_not_the_commits_is_fetched(store, commit, places):
    """A later commit lists the same names and sizes, and another content of one of them."""
    store.faults.remove(await interrupted(store, commit, places))
    assert held(places[1] / "files")["e/one"] == b"1"
    newer = listed("e/one", b"2")
    store.content.objects[f"base/run/{newer.object}"] = b"2"
    files = tuple(newer if file.name == newer.name else file for file in commit.files)
    await CommitDownloader(LineageStore(store, "run"), settings=SMALL).bring(
        msgspec.structs.replace(COMMIT, files=files), *places
    )
    assert held(places[0]) == {**FILES, "e/one": b"2"}


async def test_a_directory_that_cannot_be_written_is_a_sentence(store, commit, places, monkeypatch):
    def failing(self, target):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(Refused, match=r"cannot be written .*Read-only"):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).bring(commit, *places)
    monkeypatch.undo()
    (places[1].parent / "file").write_bytes(b"")
    with pytest.raises(Refused, match="cannot be made"):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).bring(
            commit, places[0], places[1].parent / "file" / "aside"
        )


async def test_a_restore_killed_at_any_step_leaves_whole_files_and_is_completed(tmp_path):
    contents = {"latest": b"e", "e/one": b"1", "e/d/many": os.urandom(3 * RANGE + 13)}
    files = tuple(sorted(listed(name, data) for name, data in contents.items()))
    commit = msgspec.structs.replace(COMMIT, files=files)
    uri = f"file://{tmp_path}/store"
    (tmp_path / "store").mkdir()
    (tmp_path / "work").mkdir()
    store = LocalStore(parse_uri(uri))
    for file in commit.files:
        await store.write(f"run/{file.object}", contents[file.name])
    await store.write(f"run/{commit_name(1)}", encode_commit(commit))
    program = Path(__file__).with_name("killed_restore.py")
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, program, uri, "run", tmp_path / "work"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20, "fewer steps than files and ranges need"


def ranked(*ranks):
    files = tuple(listed(name, b"%d" % (rank or 0), rank) for name in ("a", "b") for rank in ranks)
    return msgspec.structs.replace(COMMIT, files=files)


@pytest.mark.parametrize(
    ("ranks", "mine", "whose"),
    [
        ([None], 3, None),
        ([None], None, None),
        ([0, 1, 2], 1, 1),
        ([2, 1, 0], 1, 1),
        ([0, 1], 7, 0),
        ([3, 1], 0, 1),
        ([1, 0], None, 0),
    ],
)
def test_a_rank_gets_its_own_else_what_all_share_else_the_lowest(ranks, mine, whose):
    chosen = for_rank(ranked(*ranks), mine)
    assert [(file.name, file.rank) for file in chosen.files] == [("a", whose), ("b", whose)]


names = st.sampled_from("abc")
files = st.dictionaries(st.tuples(names, st.none() | st.integers(0, 3)), st.binary(max_size=3))


@given(files, st.none() | st.integers(0, 5))
def test_every_name_comes_once_whatever_the_rank(found, rank):
    commit = msgspec.structs.replace(
        COMMIT, files=tuple(listed(n, data, r) for (n, r), data in found.items())
    )
    chosen = for_rank(commit, rank).files
    assert sorted(file.name for file in chosen) == sorted({name for name, _ in found})
    assert set(chosen) <= set(commit.files)
    assert all(file.rank == rank for file in chosen if (file.name, rank) in found)


def test_room_is_counted_in_pages_without_what_is_there(commit, places):
    target, aside = places
    assert bytes_to_restore(commit, target, aside) == 4096 * 5
    (target / "latest").write_bytes(b"e")
    (aside / "files" / "e").mkdir(parents=True)
    (aside / "files" / "e" / "one").write_bytes(b"1")
    assert bytes_to_restore(commit, target, aside) == 4096 * 3
    assert bytes_to_restore(ranked(0, 1), target, aside, 1) == 4096 * 2

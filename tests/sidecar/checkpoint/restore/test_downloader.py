import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.destination.commit import commit_name, encode_commit
from podferry.contract.errors import Changed, Corrupt, NotFound, Refused, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.downloader import CommitDownloader, bytes_to_restore, for_rank
from podferry.storage.local.store import LocalStore
from podferry.storage.memory.store import Fault, MemoryStore
from tests.support.restore_site import COMMIT, FILES, RANGE, SMALL, held, interrupted, listed


def reads(store):
    return [name for call, name in store.content.calls if call == "read"]


def damage(store, name, at):
    (key,) = [key for key in store.content.objects if key.endswith(name)]
    data = bytearray(store.content.objects[key])
    data[at] ^= 1
    store.content.objects[key] = bytes(data)


async def test_files_come_in_ranges_within_one_bound(store, commit, directories):
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

    progress = []
    counting = Counting(store.uri, store.content)
    downloader = CommitDownloader(
        LineageStore(counting, "run"), lambda done, total: progress.append((done, total)), SMALL
    )
    await downloader.download(commit, *directories)
    assert held(directories[0]) == FILES
    assert len(reads(store)) == 12
    assert 3 * RANGE < most <= SMALL.buffer_bytes
    assert (progress[0], progress[-1]) == ((0, commit.bytes), (commit.bytes, commit.bytes))
    assert progress == sorted(progress)
    assert not directories[1].exists()


@pytest.mark.parametrize(("name", "at"), [("one", 0), ("many", 0), ("many", 5 * RANGE), ("many", -1)])
async def test_a_flipped_byte_restores_nothing(store, commit, directories, name, at):
    damage(store, name, at)
    with pytest.raises(Corrupt, match=f"{name} is damaged.*xxh128"):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).download(commit, *directories)
    assert held(directories[0]) == {}


@pytest.mark.parametrize("name", ["", "many"])
async def test_it_knows_which_objects_are_the_committed_ones(store, commit, directories, name):
    downloader = CommitDownloader(LineageStore(store, "run"), settings=SMALL)
    if name:
        damage(store, name, 0)
        with pytest.raises(Corrupt):
            await downloader.download(commit, *directories)
    else:
        await downloader.download(commit, *directories)
    objects = {file.object for file in commit.files}
    damaged = {one for one in objects if name and one.endswith(name)}
    assert downloader.verified <= objects - damaged
    assert bool(name) or downloader.verified == objects


@pytest.mark.parametrize("name", ["one", "many"])
async def test_one_corrupted_response_costs_one_range(store, commit, directories, name):
    store.faults.append(Fault("read", f"*{name}", skip=4 * (name == "many"), corrupt=17))
    await CommitDownloader(LineageStore(store, "run"), settings=SMALL).download(commit, *directories)
    assert held(directories[0]) == FILES


async def test_corrupted_responses_restore_nothing(store, commit, directories):
    store.faults.append(Fault("read", "*many", times=999, corrupt=17))
    with pytest.raises(Corrupt, match="many is damaged"):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).download(commit, *directories)
    assert held(directories[0]) == {}


async def test_no_byte_is_read_if_an_object_is_missing(store, commit, directories):
    await store.delete([f"run/{commit.files[0].object}"])
    with pytest.raises(NotFound):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).download(commit, *directories)
    assert reads(store) == []


async def test_an_object_that_changes_during_the_download_is_noticed(store, commit, directories):
    class Changing(MemoryStore):
        async def read(self, name, start=0, length=None, tag="", size=None):
            if start == 3 * RANGE:
                damage(store, "many", 0)
            return await super().read(name, start, length, tag, size)

    with pytest.raises(Changed):
        await CommitDownloader(
            LineageStore(Changing(store.uri, store.content), "run"), settings=SMALL
        ).download(commit, *directories)
    assert held(directories[0]) == {}


async def test_ranges_are_retried_one_by_one(store, commit, directories):
    store.faults.append(Fault("read", "*many", skip=4, error=Unavailable.of("reset")))
    await CommitDownloader(LineageStore(store, "run"), settings=SMALL).download(commit, *directories)
    assert len(reads(store)) == 13


async def test_the_next_call_resumes_from_complete_files(store, commit, directories):
    down = await interrupted(store, commit, directories)
    assert held(directories[0]) == {}
    assert "e/one" in held(directories[1] / "files")
    store.faults.remove(down)
    store.content.calls.clear()
    progress = []
    await CommitDownloader(
        LineageStore(store, "run"), lambda done, total: progress.append(done), SMALL
    ).download(commit, *directories)
    assert held(directories[0]) == FILES
    assert [name.rpartition("/")[2] for name in reads(store)] == ["latest"]
    assert progress[0] == commit.bytes - 1


async def test_a_directory_that_cannot_be_written_is_a_readable_error(
    store, commit, directories, monkeypatch
):
    def failing(self, target):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(Refused, match=r"cannot be written .*Read-only"):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).download(commit, *directories)
    monkeypatch.undo()
    (directories[1].parent / "file").write_bytes(b"")
    with pytest.raises(Refused, match="cannot be created"):
        await CommitDownloader(LineageStore(store, "run"), settings=SMALL).download(
            commit, directories[0], directories[1].parent / "file" / "staging"
        )


async def test_a_restore_killed_at_any_step_leaves_complete_files_and_is_resumed(tmp_path):
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
def test_a_rank_gets_its_own_file_else_the_shared_else_the_lowest_ranks(ranks, mine, whose):
    chosen = for_rank(ranked(*ranks), mine)
    assert [(file.name, file.rank) for file in chosen.files] == [("a", whose), ("b", whose)]


names = st.sampled_from("abc")
files = st.dictionaries(st.tuples(names, st.none() | st.integers(0, 3)), st.binary(max_size=3))


@given(files, st.none() | st.integers(0, 5))
def test_every_name_is_restored_once_for_any_rank(found, rank):
    commit = msgspec.structs.replace(
        COMMIT, files=tuple(listed(n, data, r) for (n, r), data in found.items())
    )
    chosen = for_rank(commit, rank).files
    assert sorted(file.name for file in chosen) == sorted({name for name, _ in found})
    assert set(chosen) <= set(commit.files)
    assert all(file.rank == rank for file in chosen if (file.name, rank) in found)


def test_bytes_to_restore_count_pages_of_missing_files(commit, directories):
    target, staging = directories
    assert bytes_to_restore(commit, target, staging) == 4096 * 5
    (target / "latest").write_bytes(b"e")
    (staging / "files" / "e").mkdir(parents=True)
    (staging / "files" / "e" / "one").write_bytes(b"1")
    assert bytes_to_restore(commit, target, staging) == 4096 * 3
    assert bytes_to_restore(ranked(0, 1), target, staging, 1) == 4096 * 2

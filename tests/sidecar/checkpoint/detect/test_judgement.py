"""Which saves are sure and which are doubtful: what ordinary trainers write, as a detector sees it."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from podferry.sidecar.checkpoint.detect import evidence
from tests.support.detector_bench import LONG, SHORT, WHOLE, Bench, replace, save

HDF5 = next(Path(__file__).parents[3].joinpath("data", "formats").glob("*.h5"))

ARCHIVE = HDF5.with_name("state.pt")


async def test_a_whole_file_that_is_not_named_like_a_part_is_sure_at_once(bench):
    assert await save(bench, "ckpt-1.pkl") == ["ckpt-1"]
    assert bench.doubts == {"ckpt-1": set()}


async def test_the_first_directory_is_doubtful_and_the_second_proves_it(one_life):
    both = ("model.pkl", "optimizer.pkl")
    assert await save(one_life, *(f"step-1/{name}" for name in both)) == []
    assert await one_life.scan(after=LONG - SHORT) == ["step-1"]
    assert one_life.doubts == {"step-1": {"unproven"}}
    assert await save(one_life, *(f"step-2/{name}" for name in both)) == []  # both may be halves
    assert await one_life.scan(after=LONG - SHORT) == ["step-2"]
    assert (one_life.doubts["step-2"], one_life.proven) == (set(), ["step-1"])


async def test_after_a_possible_restart_the_second_directory_needs_the_long_pause(bench):
    await save(bench, "step-1/model.pkl", pause=LONG)
    assert await save(bench, "step-2/model.pkl") == []
    assert await bench.scan(after=LONG - SHORT) == ["step-2"]
    assert (bench.doubts["step-2"], bench.proven) == (set(), ["step-1"])
    assert await save(bench, "step-3/model.pkl") == ["step-3"]


async def test_a_later_save_ends_the_pause_of_the_one_before(one_life):
    await save(one_life, "step-1/model.pkl")
    assert await save(one_life, "step-2/model.pkl") == []
    assert await save(one_life, "step-3/model.pkl") == ["step-1", "step-2", "step-3"]
    assert one_life.doubts == {"step-1": set(), "step-2": set(), "step-3": set()}


async def test_fewer_files_than_the_save_before_are_doubtful(one_life):
    await save(one_life, "step-1/model.pkl", "step-1/optimizer.pkl", pause=LONG)
    assert await save(one_life, "step-2/model.pkl") == []
    assert await one_life.scan(after=LONG) == ["step-2"]
    assert one_life.doubts["step-2"] == {"fewer"}
    assert one_life.proven == ["step-1"]  # the trainer had finished it


@pytest.mark.parametrize("pause", [SHORT, LONG])
async def test_shards_are_counted(one_life, pause):
    shards = [f"model-{number:02}.pkl" for number in range(4)]
    await save(one_life, *(f"step-1/{name}" for name in shards), pause=LONG)
    await save(one_life, *(f"step-2/{name}" for name in shards), pause=LONG)
    found = await save(one_life, *(f"step-3/{name}" for name in shards[:2]), pause=pause)
    assert found == (["step-3"] if pause == LONG else [])
    assert one_life.doubts.get("step-3", {"fewer"}) == {"fewer"}


async def test_a_directory_overwritten_in_place_is_sure_only_when_all_of_it_is_new(one_life):
    both = ("last/model.pkl", "last/optimizer.pkl")
    await save(one_life, *both, pause=LONG)
    await save(one_life, *both, data=pickle.dumps([2] * 20), pause=LONG)
    assert one_life.doubts["last"] == set()
    assert await save(one_life, both[0], data=pickle.dumps([3] * 30)) == []
    assert await one_life.scan(after=LONG) == ["last"]
    assert one_life.doubts["last"] == {"mixed"}
    assert await save(one_life, both[1], data=pickle.dumps([3] * 30)) == ["last"]
    assert one_life.doubts["last"] == set()


async def test_parts_at_the_top_are_one_checkpoint(one_life):
    parts = ("model.pkl", "optimizer.pkl", "scheduler.pkl")
    assert await save(one_life, *parts, pause=LONG) == ["model"]
    assert one_life.doubts["model"] == {"unproven"}
    assert await replace(one_life, *parts, pause=LONG) == ["model"]
    assert (one_life.doubts["model"], one_life.proven) == (set(), ["model"])
    assert await replace(one_life, parts[0], pause=LONG) == ["model"]
    assert one_life.doubts["model"] == {"mixed"}


async def test_a_raw_file_of_the_same_size_is_sure_and_of_another_is_not(one_life):
    assert await save(one_life, "step-1.raw", data=b"1" * 9000, pause=LONG) == ["step-1"]
    assert await save(one_life, "step-2.raw", data=b"2" * 9000, pause=LONG) == ["step-2"]
    assert one_life.doubts == {"step-1": {"unproven"}, "step-2": set()}
    assert await save(one_life, "step-3.raw", data=b"3" * 9001) == []
    assert await save(one_life, "step-4.raw", data=b"4" * 9000) == ["step-3", "step-4"]
    assert one_life.doubts["step-3"] == set()


def zipped(size):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("weights", bytes(size))
    return data.getvalue()


def arrays(*sizes):
    data = io.BytesIO()
    np.savez(data, *map(np.zeros, sizes))
    return data.getvalue()


@pytest.mark.parametrize(
    ("archives", "doubts"),
    [
        ((zipped(1000), zipped(1000)), set()),
        ((zipped(1000), zipped(990)), {"unproven"}),  # an exception within a member
        ((arrays(10, 10), arrays(10, 12)), set()),  # arrays are whole for certain
        ((arrays(10, 10), arrays(22)), {"unproven", "fewer"}),
    ],
)
async def test_an_archive_is_compared_with_the_one_before(one_life, archives, doubts):
    for number, data in enumerate((archives[0], *archives), 1):
        await save(one_life, f"step-{number}/w.{'npz' if b'.npy' in data else 'zip'}", data=data, pause=LONG)
    assert one_life.doubts["step-3"] == doubts


async def test_a_raw_file_overwritten_in_place_stays_doubtful(one_life):
    for number in range(3):
        assert await save(one_life, "last.raw", data=b"%d" % number * 9000, pause=LONG) == ["last"]
        assert one_life.doubts["last"] == {"unproven"}
    assert one_life.proven == []


async def test_a_much_smaller_raw_file_is_doubtful(one_life):
    await save(one_life, "step-1.raw", data=bytes(100_000), pause=LONG)
    await save(one_life, "step-2.raw", data=bytes(100_000), pause=LONG)
    assert await save(one_life, "step-3.raw", data=bytes(50_000), pause=LONG) == ["step-3"]
    assert one_life.doubts["step-3"] == {"smaller", "unproven"}
    await save(one_life, "step-4.raw", data=bytes(100_000), pause=LONG)
    assert "step-3" not in one_life.proven


async def test_a_file_that_was_renamed_into_place_needs_no_end(bench):
    bench.write("ckpt-1.tmp", b"raw")
    os.utime(bench.root / "ckpt-1.tmp", ns=(0, 1))
    (bench.root / "ckpt-1.tmp").rename(bench.root / "ckpt-1.raw")
    await bench.scan("ckpt-1.raw")
    assert await bench.scan(after=SHORT) == ["ckpt-1"]
    assert bench.doubts == {"ckpt-1": set()}


async def test_the_first_part_that_was_renamed_into_place_is_doubtful_and_the_second_is_sure(one_life):
    """Another part may follow the first one."""
    for number, doubts in ((7, {"unproven"}), (8, set())):
        one_life.write("saving.tmp", b"raw" * number)
        os.utime(one_life.root / "saving.tmp", ns=(0, number))
        (one_life.root / "saving.tmp").rename(one_life.root / f"model-{number}.bin")
        await one_life.scan(f"model-{number}.bin")
        await one_life.scan(after=LONG)
        assert one_life.doubts[f"model-{number}"] == doubts
    assert one_life.proven == ["model-7"]


async def test_a_directory_that_was_renamed_into_place_is_sure_whatever_is_in_it(bench):
    await save(bench, "step-1/a.raw", "step-1/b.raw", pause=LONG)
    bench.write("saving.tmp/a.raw", b"1")
    await bench.scan()
    os.utime(bench.root / "saving.tmp", ns=(0, 1))  # a rename within one clock tick
    os.utime(bench.root / "saving.tmp/a.raw", ns=(0, 1))
    (bench.root / "saving.tmp").rename(bench.root / "step-2")
    await bench.scan("step-2/a.raw")
    assert await bench.scan(after=SHORT) == ["step-2"]
    assert bench.doubts["step-2"] == set()


async def test_a_mark_makes_a_checkpoint_sure_even_later(bench):
    await save(bench, "step-1/model.raw", pause=LONG)
    assert bench.doubts["step-1"] == {"unproven"}
    assert not (await bench.detector.mark("step-1")).problems
    await bench.scan()
    assert bench.proven == ["step-1"]


async def test_a_file_that_is_only_parameters_is_doubtful(bench):
    assert await save(bench, "epoch-1.pdparams") == []
    assert await bench.scan(after=LONG) == ["epoch-1"]
    assert bench.doubts == {"epoch-1": {"unproven"}}


async def test_an_archive_with_fewer_members_than_the_one_before_is_doubtful(one_life):
    for step, names in ((1, "ab"), (2, "ab"), (3, "a")):
        arrays = {name: np.zeros(3) for name in names}
        with (one_life.root / f"step-{step}.npz").open("wb") as file:
            np.savez(file, **arrays)
        await one_life.scan(f"step-{step}.npz")
        await one_life.scan(after=LONG)
    assert "fewer" in one_life.doubts["step-3"]
    assert one_life.doubts["step-2"] == set()


async def test_the_size_of_hdf5_proves_nothing(one_life):
    for step in (1, 2):
        one_life.write(f"step-{step}.h5", HDF5.read_bytes())
        await one_life.scan(f"step-{step}.h5")
        await one_life.scan(after=LONG)
    assert one_life.doubts["step-2"] == {"unproven"}
    assert one_life.proven == ["step-1"]  # but a later one does


async def close_late(bench, suffix):
    """The third of three files has its size long before its close; what is accepted after the short pause."""
    await save(bench, f"step-1{suffix}", data=b"1" * 9000, pause=LONG)
    await save(bench, f"step-2{suffix}", data=b"2" * 9000, pause=LONG)
    bench.write(f"step-3{suffix}", b"3" * 9000)
    await bench.scan()
    await bench.scan(f"step-3{suffix}", after=0.5)
    return await bench.scan(after=SHORT)


async def test_a_file_that_had_its_size_long_before_its_close_may_have_been_mapped(one_life):
    assert await close_late(one_life, ".raw") == []
    assert await one_life.scan(after=LONG) == ["step-3"]
    assert one_life.doubts["step-3"] == {"unproven"}


async def test_a_stream_that_is_synced_before_its_close_was_not_mapped(tmp_path):
    bench = Bench(tmp_path, gang=True, one_life=True)
    assert await close_late(bench, "/__1_0.distcp") == ["step-3"]
    assert bench.doubts["step-3"] == set()


async def test_the_closes_of_a_killed_trainer_prove_no_file_that_it_had_mapped(one_life):
    for number in (1, 2):
        await save(one_life, f"step-{number}.raw", data=b"1" * 9000, pause=LONG)
    one_life.write("step-3.raw", b"3" * 9000)
    await one_life.scan(after=1)
    await one_life.scan("step-3.raw", after=1, final=True)
    assert one_life.doubts["step-3"] == {"unproven"}


async def test_a_file_of_full_size_with_holes_is_doubtful(one_life):
    """A trainer that sets the size first and was killed before it wrote all of it."""
    array = np.ones(100_000)
    for step in (1, 2):
        np.save(one_life.root / f"step-{step}.npy", array)
        await one_life.scan(f"step-{step}.npy")
        await one_life.scan(after=LONG)
    assert (one_life.doubts["step-2"], one_life.proven) == (set(), ["step-1"])
    held = np.lib.format.open_memmap(one_life.root / "step-3.npy", "w+", dtype=array.dtype, shape=array.shape)
    held[:10] = 1
    held.flush()
    if (one_life.root / "step-3.npy").stat().st_blocks * 512 >= array.nbytes:
        pytest.skip("this file system has no holes")
    await one_life.scan("step-3.npy")
    assert await one_life.scan(after=SHORT) == []
    assert await one_life.scan(after=LONG) == ["step-3"]
    assert one_life.doubts["step-3"] == {"unproven"}


async def test_a_temporary_part_that_could_not_be_removed_is_not_missed(one_life):
    await save(one_life, "step-1/a.pkl", "step-1/variables_temp/part-00000-of-00001.pkl", pause=LONG)
    await save(one_life, "step-2/a.pkl", pause=LONG)
    assert "fewer" not in one_life.doubts["step-2"]


async def test_a_folder_that_only_ends_like_a_temporary_one_is_missed(one_life):
    await save(one_life, "step-1/a.pkl", "step-1/head_temp/model.pkl", pause=LONG)
    await save(one_life, "step-2/a.pkl", pause=LONG)
    assert "fewer" in one_life.doubts["step-2"]


def link(path):
    os.link(path, path.with_name("backup"))
    path.with_name("backup").unlink()


@pytest.mark.parametrize("change", [link, lambda path: path.chmod(0o640)])
async def test_a_file_that_was_written_at_its_name_was_not_renamed(one_life, change):
    """Killed in the middle; then a wrapper changes modes, or links a backup."""
    one_life.write("step-1.raw", b"torn")
    await one_life.scan("step-1.raw")
    path = one_life.root / "step-1.raw"
    while path.stat().st_ctime_ns == path.stat().st_mtime_ns:
        change(path)
    assert await one_life.scan(final=True) == ["step-1"]
    assert one_life.doubts["step-1"] == {"unproven"}


async def test_a_copy_that_gets_the_times_of_its_original_is_complete(bench):
    """As shutil.copy2 does at its end."""
    bench.write("ckpt-1.raw", b"ra")
    await bench.scan()
    bench.write("ckpt-1.raw", b"raw")
    os.utime(bench.root / "ckpt-1.raw", ns=(0, 1))
    await bench.scan("ckpt-1.raw")
    assert await bench.scan(after=SHORT) == ["ckpt-1"]
    assert bench.doubts["ckpt-1"] == set()


@pytest.mark.parametrize(
    ("counts", "doubts"), [((2, 2, 1), {"fewer"}), ((1, 1, 1), set()), ((3, 3, 2), None)]
)
async def test_fewer_pickles_than_in_the_save_before_are_doubtful(one_life, counts, doubts):
    """The model is written, and an exception interrupts the pickle of the optimizer."""
    for step, count in enumerate(counts, 1):
        await save(one_life, f"step-{step}.pkl", data=WHOLE * count, pause=LONG)
    assert one_life.doubts["step-2"] == set()
    assert one_life.doubts["step-3"] == (doubts if doubts is not None else {"fewer", "unproven"})


async def test_fewer_pickles_are_sure_once_a_later_save_is_like_that_or_if_they_were_renamed(one_life):
    for step, count in enumerate((2, 2, 1, 1), 1):
        await save(one_life, f"step-{step}.pkl", data=WHOLE * count, pause=LONG)
    assert one_life.proven == ["step-1", "step-3"]
    await save(one_life, "step-5.pkl", data=WHOLE * 2, pause=LONG)
    await save(one_life, "step-6.pkl", data=WHOLE * 2, pause=LONG)
    one_life.write("saving.tmp", WHOLE)
    last = (one_life.root / "step-6.pkl").stat()
    os.utime(one_life.root / "saving.tmp", ns=(0, last.st_mtime_ns + 1))
    (one_life.root / "saving.tmp").rename(one_life.root / "step-7.pkl")
    await one_life.scan("step-7.pkl")
    assert await one_life.scan(after=SHORT) == ["step-7"]
    assert one_life.doubts["step-7"] == set()


@pytest.mark.parametrize("pause", [SHORT, LONG])
async def test_more_pickles_in_a_later_save_prove_none_with_fewer(one_life, pause):
    """The second one is small: the sizes hardly differ."""
    large, small = pickle.dumps(bytes(100_000)), pickle.dumps(bytes(10))
    for step in (1, 2):
        await save(one_life, f"step-{step}.pkl", data=large + small, pause=LONG)
    await save(one_life, "step-3.pkl", data=large, pause=pause)
    await save(one_life, "step-4.pkl", data=large + small, pause=LONG)
    assert (one_life.doubts["step-3"], one_life.doubts["step-4"]) == ({"fewer"}, set())
    assert "step-3" not in one_life.proven


def archive_of(number):
    """A torch archive of two tensors that are all of one number; of the same size for each."""
    with zipfile.ZipFile(ARCHIVE) as source, zipfile.ZipFile(data := io.BytesIO(), "w") as archive:
        for one in source.infolist():
            content = source.read(one)
            archive.writestr(
                one.filename, bytes([number]) * len(content) if "/data/" in one.filename else content
            )
    return data.getvalue()


@pytest.mark.parametrize(
    ("emptied", "cut", "doubts"), [(False, True, {"unproven"}), (False, False, set()), (True, False, set())]
)
async def test_an_archive_that_was_overwritten_in_place_may_be_of_two_saves(one_life, emptied, cut, doubts):
    old, new = archive_of(1), archive_of(2)
    assert await save(one_life, "last.pt", data=old) == ["last"]
    if emptied:
        one_life.write("last.pt", b"")
        await one_life.scan()
    with (one_life.root / "last.pt").open("r+b") as file:
        file.write(new[: len(new) // 2] if cut else new)
    await one_life.scan("last.pt")
    assert await one_life.scan(after=LONG) == ["last"]
    assert one_life.doubts["last"] == doubts


async def test_an_archive_that_was_overwritten_in_place_is_read_once_a_scan(one_life, monkeypatch):
    """All of it: that it is not incomplete shows its end alone."""
    reads, check = [], evidence.has_checksums
    monkeypatch.setattr(evidence, "has_checksums", lambda path: reads.append(path) or check(path))
    assert await save(one_life, "last.pt", data=archive_of(1)) == ["last"]
    with (one_life.root / "last.pt").open("r+b") as file:
        file.write(archive_of(2))
    await one_life.scan("last.pt")
    assert await one_life.scan(after=LONG) == ["last"]
    assert len(reads) == 1


def safetensors_of(number):
    header = b'{"w":{"dtype":"U8","shape":[9000],"data_offsets":[0,9000]}}'
    return len(header).to_bytes(8, "little") + header + bytes([number]) * 9000


@pytest.mark.parametrize("mode", ["r+b", "wb"])
async def test_a_file_that_was_changed_at_its_full_size_may_be_of_two_saves(one_life, mode):
    """Its format shows where it ends, and not which of its bytes are new."""
    path = one_life.root / "last.safetensors"
    assert await save(one_life, path.name, data=safetensors_of(1)) == ["last"]
    with path.open(mode) as file:
        for piece in (slice(0, 3000), slice(3000, 6000), slice(6000, None)):
            file.write(safetensors_of(2)[piece])
            file.flush()
            os.utime(path)
            await one_life.scan()
    await one_life.scan(path.name)
    assert await one_life.scan(after=LONG) == ["last"]
    assert one_life.doubts["last"] == ({"unproven"} if mode == "r+b" else set())

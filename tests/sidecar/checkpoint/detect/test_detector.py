import asyncio
import json
import os
import pickle
import shutil

import pytest

from podferry.sidecar.checkpoint.detect.detector import IDLE_SECONDS, Detector
from podferry.sidecar.checkpoint.detect.directory_scan import scan_directory
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.detect.watcher import InotifyWatch, Watch
from tests.support.detector_bench import SETTINGS, Bench
from tests.support.patience import PATIENCE


def proven(number=0):
    """A file whose format shows its end."""
    return pickle.dumps({"number": number})


async def test_a_proven_file_is_complete_after_the_short_pause(bench):
    bench.write("a.pkl", proven())
    assert await bench.scan("a.pkl") == []
    assert bench.detector.not_ready["a"].what == "a is still being written"
    assert await bench.scan(after=0.9) == []
    assert bench.detector._due_seconds == pytest.approx(0.1)
    assert await bench.scan(after=0.1) == ["a"]
    assert (bench.detector.not_ready, bench.detector._due_seconds) == ({}, IDLE_SECONDS)
    assert await bench.scan(after=60) == []


async def test_a_file_without_an_observed_close_needs_the_long_pause(bench):
    bench.write("a.bin")
    assert await bench.scan() == []
    assert await bench.scan(after=4.9) == []
    assert await bench.scan(after=0.1) == ["a"]


async def test_a_change_restarts_the_pause(bench):
    bench.write("a.bin")
    await bench.scan("a.bin")
    bench.write("a.bin", b"22")
    assert await bench.scan(after=1.0) == []
    assert await bench.scan(after=4.9) == []
    assert await bench.scan(after=0.1) == ["a"]


async def test_a_closed_file_of_unknown_format_is_doubtful_after_the_long_pause(bench):
    bench.write("a.bin")
    await bench.scan("a.bin")
    assert await bench.scan(after=4.9) == []
    assert await bench.scan(after=0.1) == ["a"]
    assert bench.doubts == {"a": {"unproven"}}


async def test_every_file_of_a_candidate_must_be_quiet(bench):
    bench.write("a/1.bin")
    await bench.scan("a/1.bin")
    bench.write("a/2.bin")
    assert await bench.scan("a/2.bin", after=4.9) == []
    assert await bench.scan(after=4.9) == []
    assert await bench.scan(after=0.1) == ["a"]


async def test_after_training_files_need_not_be_quiet_but_complete(bench):
    bench.write("a.bin")
    bench.write("b.json", b"{")
    assert await bench.scan(final=True) == ["a"]
    assert list(bench.detector.not_ready) == ["b"]
    assert "not a complete JSON" in bench.detector.not_ready["b"].measured


async def test_only_a_new_version_is_found_again(bench):
    bench.write("a.bin")
    assert await bench.scan(final=True) == ["a"]
    assert await bench.scan(final=True) == []
    bench.write("a.bin", b"22")
    assert await bench.scan(final=True) == ["a"]


async def test_checkpoints_are_ordered_by_their_last_change(bench):
    for number, name in enumerate("cab"):
        bench.write(f"{name}.bin")
        os.utime(bench.root / f"{name}.bin", ns=(0, number))
    assert await bench.scan(final=True) == ["c", "a", "b"]


async def test_a_checkpoint_that_lost_files_is_not_a_new_version(bench):
    for name in "xyz":
        bench.write(f"a/{name}.bin")
    assert await bench.scan(final=True) == ["a"]
    (bench.root / "a" / "x.bin").unlink()
    assert await bench.scan(after=60) == []
    assert bench.detector.not_ready == {}
    bench.write("a/z.bin", b"22")
    assert await bench.scan(after=60) == []
    assert await bench.scan(after=5) == ["a"]


async def test_a_checkpoint_that_is_being_deleted_is_not_quiet(bench):
    for name in "xyz":
        bench.write(f"a/{name}.bin")
    await bench.scan()
    (bench.root / "a" / "x.bin").unlink()
    assert await bench.scan(after=5) == []
    (bench.root / "a" / "y.bin").unlink()
    assert await bench.scan(after=4.9) == []
    shutil.rmtree(bench.root / "a")
    assert await bench.scan(after=60) == []
    assert bench.detector.not_ready == {}


async def test_a_temporary_file_that_is_renamed_is_not_a_deletion(bench):
    bench.write("a/__0_0.distcp")
    bench.write("a/.metadata.tmp")
    await bench.scan("a/__0_0.distcp")
    (bench.root / "a" / ".metadata.tmp").rename(bench.root / "a" / ".metadata")
    assert await bench.scan("a/.metadata") == []
    assert await bench.scan(after=1) == ["a"]


async def test_a_missing_shard_blocks_the_checkpoint(bench):
    bench.write("a/m.index.json", json.dumps({"weight_map": {"w": "m-1.bin", "v": "m-2.bin"}}).encode())
    bench.write("a/m-1.bin")
    assert await bench.scan(final=True) == []
    assert "a/m-2.bin, which is missing" in str(bench.detector.not_ready["a"])
    bench.write("a/m-2.bin")
    assert await bench.scan(final=True) == ["a"]


async def test_the_trainer_state_is_written_last(bench):
    bench.write("checkpoint-5/model.bin")
    bench.write("checkpoint-5/optimizer.pt", b"\x80pickle")
    await bench.scan()
    assert await bench.scan(after=60) == []
    bench.write("checkpoint-5/trainer_state.json", b"{}")
    await bench.scan("checkpoint-5/trainer_state.json")
    assert await bench.scan(after=1) == ["checkpoint-5"]


async def test_files_deleted_during_a_scan_are_no_error(bench, monkeypatch):
    bench.write("a/x.index.json", b"{}")
    bench.write("b.json", b"{}")

    def and_remove(root):
        found = scan_directory(root)
        shutil.rmtree(root / "a", ignore_errors=True)
        (root / "b.json").unlink(missing_ok=True)
        return found

    monkeypatch.setattr("podferry.sidecar.checkpoint.detect.detector.scan_directory", and_remove)
    assert await bench.scan(final=True) == []
    assert "cannot be read" in bench.detector.not_ready["a"].measured


async def test_closed_files_are_named_relative_to_the_directory(tmp_path):
    class ClosedFile(Watch):
        async def wait(self, seconds):
            return {tmp_path / "a" / "b.bin"}

    assert await Detector(tmp_path, ClosedFile(SETTINGS.poll_seconds), SETTINGS).wait_for_change() == {
        "a/b.bin"
    }


async def test_a_wake_ends_the_wait(bench):
    bench.detector.wake()
    async with asyncio.timeout(PATIENCE):
        assert await bench.detector.wait_for_change() == set()


async def test_no_checkpoint_overtakes_an_older_one_that_is_not_quiet_yet(bench):
    for number, name in enumerate(("old.bin", "new.pkl", "torn.json")):
        bench.write(name, proven() if name == "new.pkl" else b"{")
        os.utime(bench.root / name, ns=(0, number))
    await bench.scan("new.pkl", "torn.json")
    assert await bench.scan(after=1) == []
    assert "waits for old, which is older" in bench.detector.not_ready["new"].what
    assert bench.detector._due_seconds == pytest.approx(4)
    assert await bench.scan(after=4) == ["old", "new"]
    bench.write("newest.pkl", proven())
    await bench.scan("newest.pkl")
    assert await bench.scan(after=1) == ["newest"]  # the torn one does not block it


async def test_the_part_of_a_rank_other_than_the_coordinator_is_complete_when_quiet(tmp_path):
    gang = Bench(tmp_path, gang=True)
    gang.write("step-1/__1_0.distcp")
    await gang.scan("step-1/__1_0.distcp")
    assert await gang.scan(after=4.9) == []
    assert await gang.scan(after=0.1) == ["step-1"]


async def test_write_time_runs_from_the_first_change_to_the_last(bench, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("podferry.sidecar.checkpoint.detect.detector.time.time", lambda: clock[0])

    async def write(name, mtime, final=False):
        bench.write(name, str(mtime).encode())
        os.utime(bench.root / name, (mtime, mtime))
        clock[0] = max(clock[0], mtime)
        return await bench.scan(final=final)

    await write("a/1", 1001)
    await write("a/2", 1004)
    await write("a/copied", 5)
    assert bench.detector.write_seconds(bench.detector.present["a"]) == 3.0
    await write("a/3", 1007, final=True)
    assert bench.detector.write_seconds(bench.detector.present["a"]) == 6.0
    await write("a/3", 1020)
    await write("a/3", 1021)
    assert bench.detector.write_seconds(bench.detector.present["a"]) == 1.0


async def test_a_directory_that_was_created_in_place_stays_so_while_it_is_empty(tmp_path):
    watch = InotifyWatch(tmp_path, 20.0)
    detector = Detector(tmp_path, watch, SETTINGS)
    folder = tmp_path / "step-1"
    folder.mkdir()
    await detector.wait_for_change()
    await detector.scan({}, set(), final=False)
    (folder / "model.raw").write_bytes(b"1")
    for path in (folder / "model.raw", folder):
        os.utime(path, ns=(0, 0))  # as after a rename
    (tmp_path / "log.csv").write_bytes(b"1")  # changes the directory above, as a rename does
    found = await detector.scan({}, {"step-1/model.raw", "log.csv"}, final=True)
    assert {one.name: bool(one.doubts) for one in found} == {"step-1": True, "log.csv": True}
    watch.close()


@pytest.mark.parametrize("wait_first", [True, False])
async def test_a_directory_with_a_file_that_was_closed_after_its_rename_is_doubtful(tmp_path, wait_first):
    """Rank 0 renames the directory while rank 1 still writes its file, and is killed."""
    watch = InotifyWatch(tmp_path, 20.0)
    detector = Detector(tmp_path, watch, SETTINGS)
    (tmp_path / "step-1.tmp").mkdir()
    await detector.wait_for_change()
    with (tmp_path / "step-1.tmp" / "rank1.raw").open("wb") as file:
        file.write(b"1")
        file.flush()
        (tmp_path / "step-1.tmp").rename(tmp_path / "step-1")
        if wait_first:
            await detector.scan({}, await detector.wait_for_change(), final=False)
    (found,) = await detector.scan({}, await detector.wait_for_change(), final=True)
    assert [doubt.kind for doubt in found.doubts] == ["unproven"]
    watch.close()


async def test_a_renamed_directory_stays_doubtful_once_a_file_in_it_was_open(tmp_path):
    bench = Bench(tmp_path, open_files=OpenFiles(sees_writers=True))
    bench.write("step-1/a.raw")
    for path in (tmp_path / "step-1" / "a.raw", tmp_path / "step-1"):
        os.utime(path, ns=(0, 0))  # as after a rename
    (tmp_path / "log.csv").write_bytes(b"1")
    with (tmp_path / "step-1" / "a.raw").open("ab"):
        await bench.scan("step-1/a.raw")
        assert "step-1" not in await bench.scan(after=SETTINGS.quiet_seconds)
    assert "step-1" in await bench.scan(final=True)
    assert bench.doubts["step-1"] == {"unproven"}

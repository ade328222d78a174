import asyncio
import json
import os
import pickle
import shutil

import pytest

from podferry.contract.http_api import Marked
from podferry.sidecar.checkpoint.detect.detector import IDLE_SECONDS, Detector, scan_checkpoints
from podferry.sidecar.checkpoint.detect.watcher import Watch
from tests.support.detector_bench import SETTINGS, Bench


async def test_a_closed_file_is_complete_after_the_short_pause(bench):
    bench.write("a.bin")
    assert await bench.scan("a.bin") == []
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


async def test_every_file_of_a_candidate_must_be_quiet(bench):
    bench.write("a/1.bin")
    await bench.scan("a/1.bin")
    bench.write("a/2.bin")
    assert await bench.scan("a/2.bin", after=0.9) == []
    assert await bench.scan(after=0.9) == []
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
        found = scan_checkpoints(root)
        shutil.rmtree(root / "a", ignore_errors=True)
        (root / "b.json").unlink(missing_ok=True)
        return found

    monkeypatch.setattr("podferry.sidecar.checkpoint.detect.detector.scan_checkpoints", and_remove)
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
    async with asyncio.timeout(5):
        assert await bench.detector.wait_for_change() == set()


async def test_no_checkpoint_overtakes_an_older_one_that_is_not_quiet_yet(bench):
    for number, name in enumerate(("old.bin", "new.bin", "torn.json")):
        bench.write(name, b"{")
        os.utime(bench.root / name, ns=(0, number))
    await bench.scan("new.bin", "torn.json")
    assert await bench.scan(after=1) == []
    assert "waits for old, which is older" in bench.detector.not_ready["new"].what
    assert bench.detector._due_seconds == pytest.approx(4)
    assert await bench.scan(after=4) == ["old", "new"]
    bench.write("newest.bin")
    await bench.scan("newest.bin")
    assert await bench.scan(after=1) == ["newest"]  # the torn one does not block it


async def test_a_framework_that_may_resume_writing_is_given_the_long_pause(bench):
    bench.write("epoch-1.pdparams", pickle.dumps({"w": 1}))
    await bench.scan("epoch-1.pdparams")
    assert await bench.scan(after=4.9) == []
    bench.write("epoch-1.pdopt", pickle.dumps({}))
    await bench.scan("epoch-1.pdopt")
    assert await bench.scan(after=1) == ["epoch-1"]


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


async def written(bench, *sizes, name="step-{}.raw"):
    """Write checkpoints of these sizes in turn; the names of the accepted ones."""
    found = []
    for number, size in enumerate(sizes):
        bench.write(name.format(number), bytes(size))
        os.utime(bench.root / name.format(number), ns=(0, number))
        found += await bench.scan(final=True)
    return found


@pytest.fixture
def in_place(monkeypatch):
    """Files whose times are set here count as written in place."""
    monkeypatch.setattr("podferry.sidecar.checkpoint.detect.history.moved_in", lambda path: False)


@pytest.mark.usefixtures("in_place")
async def test_a_clearly_smaller_file_is_implausible(bench):
    assert await written(bench, 100_000, 89_999) == ["step-0"]
    problem = bench.detector.not_ready["step-1"]
    assert problem.what == "step-1 may not be complete"
    assert problem.measured == (
        "step-1.raw is 87.9 KiB, the previous one was 97.7 KiB, "
        "and its format does not show whether it is complete"
    )
    assert "podferry checkpoint done" in problem.remedy
    assert await bench.detector.mark("step-1") == Marked("step-1")
    assert await bench.scan() == ["step-1"]


@pytest.mark.usefixtures("in_place")
async def test_checkpoints_present_at_the_first_scan_are_compared_too(bench):
    for number, size in enumerate((100_000, 50_000, 100_000)):
        bench.write(f"step-{number}.raw", bytes(size))
        os.utime(bench.root / f"step-{number}.raw", ns=(0, number))
    assert await bench.scan(final=True) == ["step-0", "step-2"]


@pytest.mark.usefixtures("in_place")
async def test_a_file_whose_format_shows_its_end_may_shrink(bench):
    for number, size in enumerate((100_000, 10)):
        bench.write(f"step-{number}.pkl", pickle.dumps(bytes(size)))
        assert await bench.scan(final=True) == [f"step-{number}"]


@pytest.mark.usefixtures("in_place")
async def test_a_new_version_of_a_name_is_compared_with_the_previous_one(bench):
    assert await written(bench, 100_000, 50_000, 100_000, name="last.raw") == ["last", "last"]


async def test_a_renamed_file_may_shrink(bench):
    assert await written(bench, 100_000) == ["step-0"]
    bench.write("step-1.tmp", bytes(5))
    os.utime(bench.root / "step-1.tmp", ns=(0, 1))
    (bench.root / "step-1.tmp").rename(bench.root / "step-1.raw")
    assert await bench.scan(final=True) == ["step-1"]


async def test_a_file_overwritten_in_place_may_not_shrink(bench):
    assert await written(bench, 100_000) == ["step-0"]
    bench.write("step-0.raw", bytes(5))
    os.link(bench.root / "step-0.raw", bench.root / ".pin")  # a hard link looks like a rename
    os.utime(bench.root / "step-0.raw", ns=(0, 1))
    assert await bench.scan(final=True) == []


async def test_parameters_wait_for_an_optimizer_file_if_the_previous_step_had_one(bench):
    for name in ("step_1.pdparams", "step_1.pdopt", "step_2.pdparams"):
        bench.write(name, pickle.dumps({}))
        os.utime(bench.root / name, ns=(0, int(name[5])))
    assert await bench.scan(final=True) == ["step_1"]
    measured = bench.detector.not_ready["step_2"].measured
    assert measured == "step_2.pdparams exists, step_2.pdopt does not yet, and step_1 had one"
    bench.write("step_2.pdopt", pickle.dumps({}))
    assert await bench.scan(final=True) == ["step_2"]


async def test_parameters_alone_are_complete_if_the_previous_ones_were_alone(bench):
    for number in range(2):
        bench.write(f"step_{number}.pdparams", pickle.dumps({}))
        assert await bench.scan(final=True) == [f"step_{number}"]

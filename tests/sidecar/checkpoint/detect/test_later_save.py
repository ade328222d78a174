"""Which later saves, and which ends, prove a doubtful save: what trainers write, as a detector sees it."""

from __future__ import annotations

import os
import pickle
import shutil

import pytest

from podferry.sidecar.checkpoint.detect.trainer_processes import TrainerProcesses
from tests.support.detector_bench import LONG, SHORT, WHOLE, Bench, replace, save


async def rewrite(bench, name, mode, first, rest):
    """Write a file in place, with a scan in between, and wait for long."""
    with (bench.root / name).open(mode) as file:
        file.write(first)
        file.flush()
        await bench.scan()
        file.write(rest)
    await bench.scan(name)
    await bench.scan(after=LONG)


@pytest.mark.parametrize(("mode", "proven"), [("wb", ["last"]), ("r+b", [])])
async def test_a_raw_file_that_is_emptied_and_written_again_proves_the_one_before(one_life, mode, proven):
    await save(one_life, "last.raw", data=b"1" * 9000, pause=LONG)
    await rewrite(one_life, "last.raw", mode, b"2" * 100, b"2" * 8900)
    assert one_life.proven == proven
    assert one_life.doubts["last"] == {"unproven"}  # until the next one


@pytest.mark.parametrize(("size", "proven"), [(9000, ["last"]), (9100, [])])
async def test_after_a_possible_restart_only_a_file_of_the_same_size_proves_the_emptied_one(
    bench, size, proven
):
    await save(bench, "last.raw", data=b"1" * 9000, pause=LONG)
    await rewrite(bench, "last.raw", "wb", b"2" * 100, b"2" * (size - 100))
    assert bench.proven == proven


@pytest.mark.parametrize(("size", "proven"), [(9000, ["step-1"]), (9100, [])])
async def test_after_a_possible_restart_only_a_file_of_the_same_size_proves_the_one_before(
    bench, size, proven
):
    """A trainer that was killed just before the end of its first save, and began again."""
    await save(bench, "step-1.raw", data=b"1" * 9000, pause=LONG)
    await save(bench, "step-2.raw", data=b"2" * size, pause=LONG)
    assert bench.proven == proven


async def test_an_emptied_file_proves_only_what_it_held(one_life):
    """A save in two steps, with a long pause between them, and the next save."""
    await save(one_life, "last.raw", data=b"1" * 9000, pause=LONG)
    with (one_life.root / "last.raw").open("ab") as file:
        file.write(b"1" * 500)
    await one_life.scan("last.raw")
    await one_life.scan(after=LONG)
    await rewrite(one_life, "last.raw", "wb", b"2" * 100, b"2" * 9400)
    assert [one.bytes for one in one_life.detector.proven] == [9500]


async def test_an_emptied_file_that_may_have_been_mapped_is_not_proven(one_life):
    one_life.write("last.raw", b"1" * 9000)
    await one_life.scan()
    await one_life.scan(after=LONG)  # no close was seen
    assert one_life.doubts["last"] == {"unproven"}
    await rewrite(one_life, "last.raw", "wb", b"2" * 100, b"2" * 8900)
    assert one_life.proven == []


async def test_a_directory_of_which_a_part_was_new_is_not_proven_once_all_of_it_is(one_life):
    """The trainer paused between two files of its second save, and then wrote the third."""
    both = ("last/model.pkl", "last/optimizer.pkl")
    await save(one_life, *both, pause=LONG)
    await save(one_life, *both, data=pickle.dumps([2] * 20), pause=LONG)
    await save(one_life, both[0], data=pickle.dumps([3] * 30), pause=LONG)
    assert one_life.doubts["last"] == {"mixed"}
    one_life.proven.clear()
    await save(one_life, both[1], data=pickle.dumps([3] * 30))
    await save(one_life, *both, data=pickle.dumps([4] * 40))
    assert one_life.proven == []


async def test_a_file_that_is_never_written_again_does_not_prevent_the_proof(one_life):
    both = ("last/config.pkl", "last/model.pkl")
    await save(one_life, *both, pause=LONG)
    await save(one_life, *both, data=pickle.dumps([2] * 20))
    one_life.proven.clear()
    for number in (3, 4):
        await replace(one_life, both[1], data=pickle.dumps([number] * 30), pause=LONG)
    assert one_life.proven == ["last"]


@pytest.mark.parametrize(("succeeded", "doubts"), [(True, set()), (False, {"unproven"})])
async def test_only_a_successful_end_proves_the_last_save(bench, succeeded, doubts):
    await save(bench, "step-1/model.raw", pause=LONG)
    bench.write("step-2/model.raw", b"other size")
    assert await bench.scan(final=True, succeeded=succeeded) == ["step-2"]
    assert ("step-2" in bench.proven) is succeeded
    assert bench.doubts["step-2"] >= doubts


async def test_a_copied_file_that_keeps_its_time_does_not_hide_when_a_save_began(one_life, tmp_path_factory):
    original = tmp_path_factory.mktemp("original") / "tokenizer.json"
    original.write_bytes(b"{}")
    os.utime(original, (0, 0))
    for step in (1, 2):
        one_life.write(f"step-{step}/model.raw", WHOLE)
        shutil.copy2(original, one_life.root / f"step-{step}")
        names = (f"step-{step}/model.raw", f"step-{step}/tokenizer.json")
        await one_life.scan(*names)
        await one_life.scan(after=LONG)
    assert (one_life.doubts["step-2"], one_life.proven) == (set(), ["step-1"])


async def test_success_settles_no_doubt_about_fewer_files(one_life):
    await save(one_life, "step-1/a.pkl", "step-1/b.pkl", pause=LONG)
    one_life.write("step-2/a.pkl", WHOLE)
    assert await one_life.scan(final=True, succeeded=True) == ["step-2"]
    assert one_life.doubts["step-2"] == {"fewer"}
    assert one_life.proven == ["step-1"]


async def test_two_saves_in_parallel_do_not_prove_each_other(one_life):
    one_life.write("step-1/a.pkl", WHOLE)
    one_life.write("step-2/a.pkl", WHOLE)
    one_life.write("step-1/b.pkl", WHOLE)
    one_life.write("step-2/b.pkl", WHOLE)
    for number, name in enumerate(("step-1/a", "step-2/a", "step-1/b", "step-2/b")):
        stat = (one_life.root / f"{name}.pkl").stat()
        assert stat.st_mtime_ns
        os.utime(one_life.root / f"{name}.pkl", ns=(0, number))
    await one_life.scan()
    await one_life.scan(after=LONG)
    assert one_life.proven == []


async def test_neither_a_later_save_nor_success_settles_what_a_link_leaves_out(one_life):
    for number in (1, 2):
        (one_life.root / f"step-{number}").mkdir()
        (one_life.root / f"step-{number}" / "base.bin").symlink_to("../../elsewhere")
        (one_life.root.parent / "elsewhere").touch()
        await save(one_life, f"step-{number}/model.pkl", pause=LONG)
        assert "left-out" in one_life.doubts[f"step-{number}"]
    await one_life.scan(final=True, succeeded=True)
    assert one_life.proven == []


async def test_success_does_not_settle_files_of_two_saves(one_life):
    await save(one_life, "last/model.pkl", "last/optimizer.pkl", pause=LONG)
    await replace(one_life, "last/model.pkl", "last/optimizer.pkl", pause=LONG)
    await replace(one_life, "last/model.pkl", pause=LONG)
    one_life.proven.clear()
    await one_life.scan(final=True, succeeded=True)
    assert (one_life.doubts["last"], one_life.proven) == ({"mixed"}, [])


async def test_a_part_of_a_save_is_not_proven_by_the_same_part_of_the_next(one_life):
    """The trainer paused in step 2 for longer than the agent, finished it, and has begun step 3."""
    both = ("a.raw", "b.raw")
    await save(one_life, *(f"step-1/{name}" for name in both), pause=LONG)
    assert await save(one_life, "step-2/a.raw", pause=LONG) == ["step-2"]
    assert await save(one_life, "step-2/b.raw") == ["step-2"]
    assert one_life.proven == ["step-1"]
    assert await save(one_life, "step-3/a.raw", pause=LONG) == ["step-3"]
    assert one_life.proven == ["step-1"]


async def test_success_does_not_prove_a_part_that_its_save_went_on_to_complete(one_life):
    """`save_pretrained` writes the configuration, pauses, and writes the weights next to it."""
    one_life.write("config.json", b"{}")
    await one_life.scan("config.json")
    assert await one_life.scan(after=LONG) == ["config"]
    assert await save(one_life, "adapter.pkl", "config.pkl", pause=LONG) == ["adapter"]
    await one_life.scan(final=True, succeeded=True)
    assert one_life.proven == ["adapter"]


@pytest.mark.parametrize("kind", ["bench", "one_life"])
async def test_a_companion_that_comes_only_now_and_then_delays_one_save(kind, request):
    """An average of the weights at every second save, in a pod and by `podferry run`."""
    site = request.getfixturevalue(kind)
    for step in (1, 2, 3):
        await save(site, f"epoch_{step}.pkl", f"swa_{step}.pkl", pause=LONG)
    assert site.doubts["epoch_3"] == set()
    await save(site, "epoch_4.pkl", pause=LONG)
    assert site.doubts["epoch_4"] == {"fewer"}
    await save(site, "epoch_5.pkl", pause=LONG)
    assert (site.proven[-1], site.doubts["epoch_5"]) == ("epoch_4", set())


@pytest.mark.parametrize("kind", ["bench", "one_life"])
async def test_two_halves_that_look_alike_do_not_prove_each_other_at_the_end(kind, request):
    """A trainer that was killed in its first save, restarted, and was killed at the same place."""
    site = request.getfixturevalue(kind)
    await save(site, "step-10/model.raw", pause=LONG)
    await save(site, "step-17/model.raw")
    assert await site.scan(after=SHORT, final=True) == ["step-17"]
    assert (site.proven, site.doubts["step-17"]) == ([], {"unproven"})


@pytest.mark.parametrize("kind", ["bench", "one_life"])
async def test_a_save_that_looks_like_the_one_before_must_rest_as_long_as_training_between_them(
    kind, request
):
    """Asynchronous savers that overlap: each writes its optimizer 14 s after its model."""
    site = request.getfixturevalue(kind)
    await save(site, "step-100/model.raw", pause=LONG)
    site.write("step-200/model.raw", WHOLE)
    later = (site.root / "step-100/model.raw").stat().st_mtime_ns + 8 * 10**9
    os.utime(site.root / "step-200/model.raw", ns=(later, later))
    await site.scan("step-200/model.raw")
    assert await site.scan(after=LONG) == ["step-200"]
    assert (site.proven, site.doubts["step-200"]) == ([], {"unproven"})
    await site.scan(after=8 - LONG)
    assert site.proven == ["step-100", "step-200"]


async def test_a_save_proves_the_one_before_once_the_next_begins(bench):
    await save(bench, "step-1/model.raw", pause=LONG)
    for step in (2, 3):
        await save(bench, f"step-{step}/model.raw")
    assert bench.proven == ["step-1"]
    assert bench.doubts == {"step-1": {"unproven"}, "step-2": set(), "step-3": set()}


class Processes(TrainerProcesses):
    """Those of a trainer that has restarted, or has not."""

    def __init__(self, *, restarted):
        super().__init__("A=1")
        self._restarted = restarted

    def all_older_than(self, at_ns):
        return at_ns > 0 and not self._restarted


@pytest.mark.parametrize(("restarted", "proven"), [(False, ["step-1"]), (True, [])])
async def test_a_save_of_another_size_proves_the_one_before_if_the_trainer_has_not_restarted(
    tmp_path, restarted, proven
):
    """Else the one before may lack what the killed trainer had buffered."""
    bench = Bench(tmp_path, processes=Processes(restarted=restarted))
    await save(bench, "step-1.raw", data=b"1" * 9000, pause=LONG)
    await save(bench, "step-2.raw", data=b"2" * 9100, pause=LONG)
    assert bench.proven == proven


async def test_a_save_is_sure_once_the_one_before_is_even_if_it_was_accepted_already(bench):
    """A trainer that was killed in its third save, before any of them had rested."""
    both = ("model.pkl", "optimizer.pkl")
    for step, names in ((1, both), (2, both), (3, both[:1])):
        for name in names:
            bench.write(f"step-{step}/{name}", WHOLE)
        await bench.scan(*(f"step-{step}/{name}" for name in names))
    assert await bench.scan(final=True) == ["step-1", "step-2", "step-3"]
    assert sorted(bench.proven) == ["step-1", "step-2"]
    assert bench.doubts["step-3"] >= {"fewer"}

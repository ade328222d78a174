from __future__ import annotations

import asyncio
import json
import shutil
import threading

from podferry.contract.http_api import Marked
from podferry.contract.spec import Completion
from podferry.sidecar.checkpoint.detect import detector
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.detect.directory_scan import scan_directory
from tests.support.detector_bench import Bench


async def test_a_marked_checkpoint_is_complete_at_once(bench):
    bench.write("a-5/w.bin")
    await bench.scan()
    assert await bench.scan() == []
    assert await bench.detector.mark("a-5") == Marked("a-5")
    assert await bench.scan() == ["a-5"]


async def test_a_step_means_the_state_of_that_step(bench):
    bench.write("step-100.bin", b"1" * 5000)
    bench.write("samples-100.png", b"2" * 9000)
    bench.write("metrics-100.json", b"{}")
    bench.write("best-100.pt", b"3")
    assert await bench.detector.mark("100") == Marked("step-100")
    assert await bench.detector.mark("samples-100") == Marked("samples-100")


async def test_a_step_means_what_there_is_without_a_state(bench):
    bench.write("samples-100.png")
    assert await bench.detector.mark("100") == Marked("samples-100")


async def test_a_mark_holds_that_comes_while_a_scan_lists_the_directory(bench, monkeypatch):
    """That listing does not have what was written after it."""
    listed, may_return, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def slow(root):
        found = scan_directory(root)
        if not listed.is_set():
            loop.call_soon_threadsafe(listed.set)
            may_return.wait(60)
        return found

    monkeypatch.setattr(detector, "scan_directory", slow)
    scanning = asyncio.create_task(bench.scan())
    await listed.wait()
    bench.write("a-5/w.bin")
    assert await bench.detector.mark("a-5") == Marked("a-5")
    may_return.set()
    await scanning
    assert await bench.scan() == ["a-5"]


async def test_a_mark_applies_to_one_version(bench):
    bench.write("a-5/w.bin")
    await bench.detector.mark("5")
    bench.write("a-5/v.bin")
    assert await bench.scan() == []
    (bench.root / "a-5" / "v.bin").unlink()
    assert await bench.scan() == ["a-5"]
    shutil.rmtree(bench.root / "a-5")
    await bench.scan()
    assert bench.detector.marks == {}


async def test_a_pointer_that_moves_on_does_not_clear_the_mark(bench):
    bench.write("a-5/w.bin")
    bench.write("latest", b"a-5")
    await bench.scan("latest")
    assert await bench.detector.mark("a-5") == Marked("a-5")
    bench.write("latest", b"a-6")
    assert "a-5" in await bench.scan()


async def test_a_torn_checkpoint_cannot_be_marked(bench):
    bench.write("a-5/w.json", b"{")
    marked = await bench.detector.mark("a-5")
    assert (marked.checkpoint, marked.problems[0].what) == ("a-5", "a-5 is not complete")
    assert bench.detector.marks == {}
    bench.write("a-5/w.json", b"{}")
    bench.write("a-5/w.tmp")
    assert "unfinished" in str((await bench.detector.mark("a-5")).problems[0])


async def test_marking_an_unknown_name_lists_the_known_ones(bench):
    assert "there is none" in str((await bench.detector.mark("a-5")).problems[0])
    bench.write("step-5.bin")
    marked = await bench.detector.mark("stop-5")
    assert marked.checkpoint is None
    assert str(marked.problems[0]).endswith("(there are step-5). Did you mean 'step-5'?")


async def test_with_completion_marked_only_a_mark_completes_a_checkpoint(tmp_path):
    bench = Bench(tmp_path, completion=Completion.MARKED)
    bench.write("a-5.bin")
    bench.write("b-6.bin")
    assert await bench.scan(after=60) == []
    assert await bench.scan(after=60, final=True) == []
    assert "checkpoint done" in bench.detector.not_ready["a-5"].remedy
    await bench.detector.mark("b-6.bin")
    assert await bench.scan() == ["b-6"]  # the unmarked one does not block it


async def test_a_marked_checkpoint_that_is_damaged_later_is_not_complete(tmp_path):
    bench = Bench(tmp_path, completion=Completion.MARKED)
    bench.write("a.index.json", b"{}")
    await bench.detector.mark("a.index")
    data = json.dumps({"weight_map": {"w": "gone.bin"}}).encode()
    identity = (bench.root / "a.index.json").stat()
    bench.write("a.index.json", data)
    bench.detector.marks["a.index"] = scan_checkpoints(bench.root)[1]["a.index"].files
    assert identity.st_size != len(data)
    assert await bench.scan() == []


async def test_marks_survive_a_worker_restart(tmp_path):
    bench = Bench(tmp_path, completion=Completion.MARKED)
    bench.write("a-5.bin")
    await bench.detector.mark("a-5")
    again = Bench(tmp_path, completion=Completion.MARKED)
    again.detector.marks.update(bench.detector.marks)
    assert await again.scan() == ["a-5"]

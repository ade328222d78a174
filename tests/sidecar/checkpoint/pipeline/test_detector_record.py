from __future__ import annotations

from pathlib import Path

import pytest

from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.pipeline.detector_record import DetectorRecord
from podferry.sidecar.runtime.file_identity import Files
from podferry.sidecar.state.journal import Journal
from tests.support.detector_bench import Bench


def bench_in(tmp_path: Path) -> Bench:
    (tmp_path / "files").mkdir(exist_ok=True)
    return Bench(tmp_path / "files")


def files_of(bench: Bench, name: str) -> Files:
    bench.write(name)
    (found,) = scan_checkpoints(bench.root)[1].values()
    return found.files


async def test_another_worker_knows_the_marks_and_what_was_linked(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    record = DetectorRecord(bench.detector, Journal(tmp_path / "control"))
    files = files_of(bench, "step-5.bin")
    record.begin(17)
    await bench.detector.mark("step-5")
    record.save_marks()
    record.link(files)

    later = bench_in(tmp_path).detector
    DetectorRecord(later, Journal(tmp_path / "control"))
    assert later.marks == {"step-5": files}
    assert (later.times.began_ns, later.times.linked) == (17, {identity.inode for _, identity in files})


async def test_another_worker_knows_what_was_written_in_place(tmp_path: Path) -> None:
    bench, other = bench_in(tmp_path), bench_in(tmp_path)
    record = DetectorRecord(bench.detector, Journal(tmp_path / "control"))
    bench.write("step-1/a.raw")
    await bench.scan(settle=False)
    record.save_places()
    folder = bench.root / "step-1"
    while folder.stat().st_ctime_ns == folder.stat().st_mtime_ns:
        folder.chmod(0o750)
    while bench.root.stat().st_mtime_ns < folder.stat().st_ctime_ns:  # a rename changes the directory above
        (bench.root / "other").touch()
        (bench.root / "other").unlink()
    DetectorRecord(other.detector, Journal(tmp_path / "control"))
    assert await other.scan(final=True) == ["step-1"]
    assert other.doubts["step-1"] == {"unproven"}


def test_files_that_are_known_to_be_linked_cost_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, journal, saved = bench_in(tmp_path), Journal(tmp_path / "control"), []
    monkeypatch.setattr(journal, "save", lambda: saved.append(list(journal.checkpoints.linked)))
    record, files = DetectorRecord(bench.detector, journal), files_of(bench, "a.bin")
    record.link(files)
    record.link(files)
    assert saved == [[identity.inode for _, identity in files]]

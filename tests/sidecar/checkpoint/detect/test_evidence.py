"""What files show by themselves."""

from __future__ import annotations

import os
import pickle
import shutil
import time

from podferry.sidecar.checkpoint.detect.change_times import ChangeTimes
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.detect.evidence import Seen, directory_moved_in, gather, moved_in


def candidate(root, name):
    return scan_checkpoints(root)[1][name]


def test_a_rename_is_visible_in_the_times(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"1")
    assert not moved_in(path, ChangeTimes())
    os.utime(path, ns=(0, 0))
    assert moved_in(path, ChangeTimes())
    assert not moved_in(tmp_path / "gone", ChangeTimes())


def test_a_directory_is_moved_in_if_nothing_in_it_changed_since(tmp_path):
    folder = tmp_path / "step-1"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.raw").write_bytes(b"1")
    assert not directory_moved_in(tmp_path, candidate(tmp_path, "step-1"), ChangeTimes())
    for path in (folder / "sub" / "a.raw", folder / "sub", folder):
        os.utime(path, ns=(0, 0))  # as after a rename in the future
    (tmp_path / "other").mkdir()
    assert directory_moved_in(tmp_path, candidate(tmp_path, "step-1"), ChangeTimes())
    (folder / "sub" / "b.raw").write_bytes(b"1")
    assert not directory_moved_in(tmp_path, candidate(tmp_path, "step-1"), ChangeTimes())
    assert not directory_moved_in(tmp_path / "gone", candidate(tmp_path, "step-1"), ChangeTimes())


def as_after_a_rename(folder):
    """Its change time is later than all times of modification, and the directory above changes with it."""
    for path in (*folder.iterdir(), folder):
        os.utime(path, ns=(0, 0))
    (folder.parent / "other").mkdir()


def later_tick(path):
    """Wait until the file system's clock, which moves every few milliseconds, has passed `path`'s times."""
    probe = path.with_name("probe")
    probe.touch()
    while probe.stat().st_ctime_ns <= path.stat().st_ctime_ns:
        os.utime(probe)
    probe.unlink()


def test_a_change_of_a_directory_alone_is_no_rename(tmp_path):
    root, source = tmp_path / "checkpoints", tmp_path / "source"
    for folder in (root / "step-1", source):
        folder.mkdir(parents=True)
        (folder / "a.raw").write_bytes(b"1")
    later_tick(root)
    (root / "step-1").chmod(0o777)
    assert not directory_moved_in(root, candidate(root, "step-1"), ChangeTimes())
    (root / "step-2").mkdir()
    later_tick(root)
    shutil.copytree(source, root / "step-2", dirs_exist_ok=True)
    assert not directory_moved_in(root, candidate(root, "step-2"), ChangeTimes())


def test_a_directory_that_was_seen_when_it_was_created_was_not_renamed(tmp_path):
    (tmp_path / "step-1").mkdir()
    (tmp_path / "step-1" / "a.raw").write_bytes(b"1")
    as_after_a_rename(tmp_path / "step-1")
    for created in (False, True):
        seen = Seen(directory_in_place=created)
        found = gather(tmp_path, candidate(tmp_path, "step-1"), ChangeTimes(), seen)
        assert found.renamed is not created


def test_what_an_earlier_run_left_is_not_proven_by_a_rename(tmp_path):
    for name in ("last.raw", "last/model.raw"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    times = ChangeTimes()
    times.load(time.time_ns() + 10**9, ())
    seen = Seen(moved=frozenset({"last.raw"}), directory_moved=True)
    found = gather(tmp_path, candidate(tmp_path, "last"), times, seen)
    assert (found.renamed, "last.raw" in found.unproven) == (False, True)
    times.load(0, ())
    found = gather(tmp_path, candidate(tmp_path, "last"), times, seen)
    assert (found.renamed, "last.raw" in found.unproven) == (True, False)


def test_a_file_at_the_top_has_no_directory_of_its_own(tmp_path):
    (tmp_path / "a.raw").write_bytes(b"1")
    assert not directory_moved_in(tmp_path, candidate(tmp_path, "a"), ChangeTimes())


def test_unproven_files_are_those_without_an_end_and_a_rename(tmp_path):
    for name, data in {"a.raw": b"1", "b.raw": b"1", "c.pkl": pickle.dumps(1)}.items():
        (tmp_path / "s" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "s" / name).write_bytes(data)
    os.utime(tmp_path / "s" / "b.raw", ns=(0, 0))
    found = gather(tmp_path, candidate(tmp_path, "s"), ChangeTimes(), Seen(frozenset({"s/c.pkl"})))
    assert (set(found.unproven), found.unclosed) == ({"s/a.raw"}, {"s/a.raw"})
    times = ChangeTimes()
    times.link(candidate(tmp_path, "s").files)
    again = gather(tmp_path, candidate(tmp_path, "s"), times, Seen(frozenset({"s/a.raw"})))
    assert set(again.unproven) == {"s/a.raw", "s/b.raw"}  # our own link changed its time
    assert again.unclosed == {"s/b.raw"}


def test_a_defect_comes_first(tmp_path):
    (tmp_path / "a.json").write_bytes(b"{")
    found = gather(tmp_path, candidate(tmp_path, "a"), ChangeTimes(), Seen())
    assert "a.json: it is not a complete JSON" in found.defect


def test_holes_of_files_that_show_no_end_are_counted(tmp_path):
    with (tmp_path / "holes.raw").open("wb") as file:
        file.write(b"begin" * 4096)
        file.seek(1 << 20)
        file.write(b"end" * 4096)
    (tmp_path / "full.raw").write_bytes(b"1" * (1 << 20))
    found = gather(tmp_path, candidate(tmp_path, "holes"), ChangeTimes(), Seen())
    assert 0 < found.holes["holes.raw"] < 1 << 20
    assert not gather(tmp_path, candidate(tmp_path, "full"), ChangeTimes(), Seen()).holes
    moved = Seen(moved=frozenset({"holes.raw"}))  # proven: nobody asks
    assert not gather(tmp_path, candidate(tmp_path, "holes"), ChangeTimes(), moved).holes

"""What counts as complete: compared with what undisturbed runs leave."""

from __future__ import annotations

import pytest
from oracle import Oracle, Recorder


@pytest.fixture
def recorded(tmp_path):
    """An oracle of runs, each a list of saves: a name, and the files written for it."""

    def record(*runs):
        recorders = []
        for number, saves in enumerate(runs):
            recorder = Recorder(tmp_path / str(number))
            for name, files in saves:
                for path, data in files.items():
                    (recorder.root / path).parent.mkdir(parents=True, exist_ok=True)
                    (recorder.root / path).write_bytes(data)
                recorder.saved(name)
            recorders.append(recorder)
        return Oracle(recorders)

    return record


FLAT = [
    ("flat", {"model.pt": b"m1", "optimizer.pt": b"o1"}),
    ("flat", {"model.pt": b"m2", "optimizer.pt": b"o2"}),
]
FOLDERS = [
    ("step-1", {"step-1/a": b"1", "step-1/b": b"1"}),
    ("last", {"last/a": b"1"}),
    ("last", {"last/a": b"2"}),
]


def test_all_files_of_one_save_are_complete(recorded):
    oracle = recorded(FLAT)
    assert oracle.is_complete({"model.pt": b"m1", "optimizer.pt": b"o1"})
    assert not oracle.is_complete({"model.pt": b"m1"})
    assert not oracle.is_complete({"model.pt": b"m2", "optimizer.pt": b"o1"})


def test_everything_below_a_directory_belongs_together(recorded):
    oracle = recorded(FOLDERS)
    assert oracle.is_complete({"step-1/a": b"1", "step-1/b": b"1"})
    assert not oracle.is_complete({"step-1/a": b"1"})
    assert oracle.is_complete({"last/a": b"2"})
    assert not oracle.is_complete({"last/a": b"torn"})


def test_a_pointer_is_not_required(recorded):
    oracle = recorded([("step-1", {"step-1/a": b"1", "latest": b"step-1"})])
    assert oracle.is_complete({"step-1/a": b"1"})


def test_a_copy_under_another_name_is_complete(recorded):
    assert recorded([("step-1", {"step-1.pt": b"whole"})]).is_complete({"last.pt": b"whole"})


def test_bytes_that_differ_between_runs_count_for_nothing(recorded):
    base = bytes(2000)
    oracle = recorded(*([("a", {"a.pt": base[:50] + bytes([run]) + base[51:]})] for run in (1, 2)))
    assert oracle.is_complete({"a.pt": base[:50] + b"\x03" + base[51:]})
    assert not oracle.is_complete({"a.pt": b"\x03" + base[1:]})
    assert not oracle.is_complete({"a.pt": base[:99]})


def test_random_names_only_have_to_be_there(recorded):
    oracle = recorded(*([("1", {"1/manifest": b"m", f"1/d/{run * 32}": b"x"})] for run in "ab"))
    assert oracle.is_complete({"1/manifest": b"m", f"1/d/{'c' * 32}": b"y"})
    assert not oracle.is_complete({"1/manifest": b"m"})


def test_a_unit_is_the_first_of_its_kind_once(recorded):
    oracle = recorded([("1", {"step-1/a": b"1"}), ("2", {"step-2/a": b"1"})])
    assert [unit.count for unit in oracle.units] == [1, 2]


def test_runs_that_do_not_agree_are_refused(recorded):
    with pytest.raises(ValueError, match="undisturbed runs differ"):
        recorded([("1", {"a": b""})], [("1", {"b": b""})])

import os
import shutil

import pytest

from podferry.contract.errors import Changed, Refused
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds
from podferry.sidecar.runtime.file_identity import scan


@pytest.fixture
def root(tmp_path):
    (tmp_path / "files" / "step" / "deep").mkdir(parents=True)
    (tmp_path / "files" / "step" / "w.bin").write_bytes(b"one")
    (tmp_path / "files" / "step" / "deep" / "v.bin").write_bytes(b"two")
    return tmp_path / "files"


@pytest.fixture
def holds(tmp_path):
    return HardlinkHolds(tmp_path / "pins")


def contents(held):
    return {name: (held.directory / name).read_bytes() for name, _ in held.files}


def step(root):
    return scan_checkpoints(root)[1]["step"]


def no_links(*_, **__):
    raise PermissionError(1, "Operation not permitted")


BOTH = {"step/deep/v.bin": b"two", "step/w.bin": b"one"}


@pytest.mark.parametrize("links", [True, False])
def test_what_is_held_outlives_its_originals(root, holds, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    held = holds.link(step(root), root, 5.0)
    assert ((root / "step" / "w.bin").stat().st_nlink == 2) == links
    (root / "step" / "w.bin").unlink()
    (root / "aside").write_bytes(b"new")
    (root / "aside").replace(root / "step" / "deep" / "v.bin")
    assert contents(held) == BOTH
    assert dict(held.files) == scan(held.directory)
    held.release()
    assert list(holds.directory.iterdir()) == []
    assert (root / "step" / "deep" / "v.bin").read_bytes() == b"new"


@pytest.mark.parametrize("change", ["overwritten", "removed", "replaced by a link", "a directory is a file"])
def test_a_change_before_it_is_held_raises_and_leaves_nothing(root, holds, change):
    candidate = step(root)
    path = root / "step" / "w.bin"
    if change == "overwritten":
        path.write_bytes(b"other")
    elif change == "a directory is a file":
        shutil.rmtree(root / "step")
        (root / "step").write_bytes(b"file")
    else:
        path.unlink()
        if change != "removed":
            path.symlink_to("deep/v.bin")
    with pytest.raises(Changed):
        holds.link(candidate, root, 5.0)
    assert list(holds.directory.iterdir()) == []


def test_what_cannot_be_held_is_refused_with_the_reason(root, holds, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(Refused, match="No space left on device"):
        holds.link(step(root), root, 5.0)
    assert list(holds.directory.iterdir()) == []


@pytest.mark.parametrize("links", [True, False])
def test_the_next_worker_adopts_what_is_held_oldest_first(root, holds, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    (root / "latest").write_bytes(b"step")
    first = holds.link(step(root), root, 5.0)
    (root / "step" / "w.bin").unlink()
    (root / "step" / "w.bin").write_bytes(b"newer")
    second = holds.link(step(root), root, 6.0)
    shutil.rmtree(root)
    later = HardlinkHolds(holds.directory)
    assert later.adopt() == [first, second]
    assert second.candidate.name == "step"
    assert contents(second) == {**BOTH, "step/w.bin": b"newer", "latest": b"step"}
    assert later._next == 3


def test_a_hold_adds_no_byte_to_a_full_volume(root, tmp_path):
    holds = HardlinkHolds(tmp_path / "pins", tmp_path / "control" / "pins")
    held = holds.link(step(root), root, 5.0)
    theirs = {path.stat().st_ino for path in root.rglob("*") if path.is_file()}
    assert {path.stat().st_ino for path in holds.directory.rglob("*") if path.is_file()} == theirs
    assert HardlinkHolds(holds.directory, tmp_path / "control" / "pins").adopt() == [held]
    held.release()
    assert list((tmp_path / "control" / "pins").iterdir()) == []


def test_notes_that_a_kill_left_are_removed(root, holds):
    held = holds.link(step(root), root, 5.0)
    shutil.rmtree(held.directory.parent)
    assert HardlinkHolds(holds.directory).adopt() == []
    assert not held.note.exists()


def test_partial_holds_are_removed_and_foreign_files_are_not(root, holds):
    (holds.directory / "7.partial" / "files").mkdir(parents=True)
    (holds.directory / "8.aside" / "files").mkdir(parents=True)  # of an earlier version
    (holds.directory / "lost+found").mkdir()
    assert holds.adopt() == []
    assert [path.name for path in holds.directory.iterdir()] == ["lost+found"]


def test_a_hold_that_was_overwritten_in_place_is_released(root, holds):
    holds.link(step(root), root, 5.0)
    (root / "step" / "w.bin").write_bytes(b"torn")
    assert HardlinkHolds(holds.directory).adopt() == []
    assert list(holds.directory.iterdir()) == []


def test_a_hold_without_a_readable_note_is_released(root, holds):
    held = holds.link(step(root), root, 5.0)
    held.note.write_bytes(b"{")
    assert HardlinkHolds(holds.directory).adopt() == []

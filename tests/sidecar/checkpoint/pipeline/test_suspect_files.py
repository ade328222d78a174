"""Each sign alone, on files whose identity never changes."""

import os
from pathlib import Path

import pytest

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.suspect_files import SuspectFiles
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds
from podferry.sidecar.runtime.file_identity import FileIdentity

A, B = "step-1/a.bin", "step-1/b.bin"


class Answers:
    """Says that these files are open for writing."""

    def __init__(self) -> None:
        self.open: set[Path] = set()

    def look(self, paths):
        return {path: path in self.open for path in paths}


class Look:
    """A checkpoint of two files, known as it is."""

    def __init__(self, base: Path, clock) -> None:
        self.root, self.answers = base / "files", Answers()
        (self.root / "step-1").mkdir(parents=True)
        for name in (A, B):
            (self.root / name).write_bytes(b"1" * 100)
        self.clock = clock
        self.suspects = SuspectFiles(self.root, self.answers, 10.0, clock)
        self.candidate = self.present()
        self.suspects.trust(self.candidate)

    def present(self) -> Candidate:
        files = [(name, FileIdentity.of((self.root / name).stat())) for name in (A, B)]
        return Candidate("step-1", tuple(files))

    def scan(self, *closed: str) -> dict[str, set[str]]:
        """What is suspect after a scan."""
        settled, present = {"step-1": self.candidate}, {"step-1": self.present()}
        self.suspects.note_closes(set(closed), settled, present)
        same = present["step-1"] == self.candidate
        return self.suspects.find({"step-1": self.candidate} if same else {})


@pytest.fixture
def look(tmp_path, clock):
    return Look(tmp_path, clock)


def test_what_is_known_is_not_suspect(look):
    assert [look.scan(), look.scan()] == [{}, {}]


def test_a_close_with_the_old_identity_is_suspect_once(look):
    assert [look.scan(A), look.scan()] == [{"step-1": {A}}, {}]


def test_a_close_with_a_new_identity_is_not(look):
    before = (look.root / A).stat()
    (look.root / A).write_bytes(b"22")
    assert look.scan(A) == {}
    (look.root / A).write_bytes(b"1" * 100)
    os.utime(look.root / A, ns=(before.st_atime_ns, before.st_mtime_ns))
    look.suspects.trust(look.candidate)
    assert look.scan() == {}


def test_another_change_time_is_suspect_once(look):
    (look.root / B).chmod(0o600)
    assert [look.scan(), look.scan()] == [{"step-1": {B}}, {}]


def test_a_change_time_that_was_never_seen_is_suspect(look):
    look.suspects = SuspectFiles(look.root, None, 10.0, look.clock)
    assert [look.scan(), look.scan()] == [{"step-1": {A, B}}, {}]


def test_an_open_file_is_suspect_until_it_was_seen_closed(look):
    look.answers.open = {look.root / A}
    found = []
    for _ in range(3):
        found.append(look.scan())
        look.clock.now += 10.0
    look.answers.open = set()
    for _ in range(2):
        found.append(look.scan())
        look.clock.now += 10.0
    assert found == [{"step-1": {A}}] * 4 + [{}]


def test_open_files_are_asked_for_at_intervals(look):
    look.scan()
    look.answers.open = {look.root / A}
    look.clock.now += 9.0
    assert look.scan() == {}
    look.suspects.pause(2.0)
    look.clock.now += 1.0
    assert look.scan() == {}
    look.clock.now += 1.0
    assert look.scan() == {"step-1": {A}}


def test_own_links_are_not_suspect(look, tmp_path):
    hold = HardlinkHolds(tmp_path / "holds").link(look.candidate, look.root, 0.0)
    look.suspects.link(look.candidate)
    assert look.suspects.release(hold) == set()
    assert look.scan() == {}


@pytest.mark.parametrize("change", ["times", "close", "restart"])
def test_what_happened_to_a_held_file_is_suspect_at_its_release(look, tmp_path, change):
    hold = HardlinkHolds(tmp_path / "holds").link(look.candidate, look.root, 0.0)
    if change != "restart":  # else an earlier worker has linked it
        look.suspects.link(look.candidate)
    if change == "times":
        (look.root / A).chmod(0o600)
    if change == "close":
        look.suspects.note_closes({A}, {"step-1": look.candidate}, {"step-1": look.present()})
    assert look.suspects.release(hold) == ({A, B} if change == "restart" else {A})


def test_removed_files_are_not_suspect(look, tmp_path):
    hold = HardlinkHolds(tmp_path / "holds").link(look.candidate, look.root, 0.0)
    for name in (A, B):
        (look.root / name).unlink()
    assert look.suspects.release(hold) == set()
    assert look.suspects.find({"step-1": look.candidate}) == {}

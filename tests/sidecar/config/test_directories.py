from __future__ import annotations

import os
from pathlib import Path

import pytest

from podferry.sidecar.config.directories import Directories, ensure_dir, sibling_dir


def test_an_ownership_record_is_below_the_control_directory_by_default():
    made = Directories(Path("/control"), ownership={"own": Path("/records")})
    assert made.ownership_of("") == Path("/control")
    assert made.ownership_of("test") == Path("/control/claims/test")
    assert made.ownership_of("own") == Path("/records")


def test_a_sibling_is_not_below_the_directory():
    assert sibling_dir(Path("/data/train")) == Path("/data/train.podferry")


def test_a_directory_is_created_once(tmp_path):
    for _ in range(2):
        assert ensure_dir(tmp_path / "new") is None
    assert (tmp_path / "new").is_dir()


def test_a_missing_parent_is_probably_a_typo(tmp_path):
    problem = ensure_dir(tmp_path / "no" / "such" / "place")
    assert problem.measured == f"{tmp_path} is the nearest that exists"
    assert problem.remedy == f"Run `mkdir -p {tmp_path}/no/such/place`"
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_a_problem(tmp_path):
    (tmp_path / "file").touch()
    taken = ensure_dir(tmp_path / "file")
    assert taken.what == f"the directory {tmp_path}/file cannot be created"
    assert (taken.measured, taken.remedy) == ("File exists", "Choose another name, or move the file away")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_directory_without_write_permission_is_a_problem(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    assert "is not writable" in ensure_dir(tmp_path / "closed").what


def test_a_checkpoint_directory_is_temporary_if_it_was_made_for_the_agent():
    named, made = Path("/user/c"), Path("/dev/shm/x/c")
    for checkpoints, temporary in ((named, False), (made, True), (None, False)):
        found = Directories(Path("/control"), checkpoints=checkpoints, temporary=(Path("/dev/shm/x"),))
        assert found.has_temporary_checkpoints is temporary

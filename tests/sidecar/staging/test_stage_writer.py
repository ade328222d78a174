import os

import pytest

from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.sidecar.staging.staging_dir import StagingDir

FILES = {"a/b.bin": b"12345", "c": b"", "d/e/f": b"xyz"}


@pytest.fixture
def claim(tmp_path):
    """Opens and claims the stage."""
    (tmp_path / "stage").mkdir()
    opened = []

    def claiming():
        for stage in opened:
            stage.close()
        opened.append(StagingDir(tmp_path / "stage", tmp_path / "ownership"))
        opened[-1].claim(freeze("s3://b/d", [Entry(name, len(data)) for name, data in FILES.items()]))
        return opened[-1]

    yield claiming
    opened[-1].close()


def test_files_are_readable_by_anyone_whatever_the_umask(claim):
    before = os.umask(0o077)
    try:
        stage = claim()
        for number, (name, data) in enumerate(FILES.items()):
            path = stage.create_partial(number)
            path.write_bytes(data)
            stage.publish(path, Entry(name, len(data)))
        stage.write_small(99, b"1", Entry("g/h/i", 1))
    finally:
        os.umask(before)
    found = stage.root.rglob("*")
    modes = {path.relative_to(stage.root).as_posix(): path.stat().st_mode & 0o777 for path in found}
    assert {modes[name] for name in (*FILES, "g/h/i")} == {0o644}
    assert {modes[name] for name in ("a", "d", "d/e", "g", "g/h")} == {0o755}


def test_a_partial_file_of_an_earlier_attempt_is_overwritten(claim):
    stage = claim()
    stage.create_partial(7).write_bytes(b"more than is to be there")
    stage.write_small(7, memoryview(b"1"), Entry("c", 1))
    assert (stage.root / "c").read_bytes() == b"1"
    assert (stage.root / "c").stat().st_mode & 0o777 == 0o644


def test_two_processes_never_write_the_same_partial_file(claim, monkeypatch):
    """A worker outlives a killed agent for a moment; the next agent numbers its files from 1 again."""
    stage = claim()
    old = stage.create_partial(1)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    new = StageWriter(stage.root).create_partial(1)
    assert old != new
    claim()
    assert not old.exists(), "what a killed one left is removed"


def test_partial_files_that_cannot_be_removed_are_no_failure_of_a_complete_stage(claim, monkeypatch):
    stage = claim()
    (stage.partial_dir / "other").mkdir()
    (stage.partial_dir / "other" / "file").write_bytes(b"1")

    def refuse(*args, **options):
        raise PermissionError

    monkeypatch.setattr(os, "unlink", refuse)
    stage.remove_partials()
    monkeypatch.undo()
    assert (stage.partial_dir / "other" / "file").exists()

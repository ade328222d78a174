"""Where a local run has its directories."""

import os
import tempfile
from pathlib import Path

import pytest

from podferry.contract.errors import Refused
from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.launch import local_directories as module
from podferry.sidecar.launch.local_directories import LocalRun, create_run, local_directories
from podferry.sidecar.launch.local_spec import local_spec


@pytest.fixture
def run(tmp_path):
    return LocalRun(RunDirectory(tmp_path / "run"), tmp_path)


def test_a_local_run_has_outputs_in_memory_or_in_the_given_directory(run, tmp_path):
    settings_ = {"outputs": str(tmp_path / "out"), "outputs_every": "60s"}
    spec = local_spec(settings_, ["python", "t.py"], tmp_path)
    assert (spec.outputs.uri, spec.outputs.every) == (f"file://{tmp_path}/out", 60)
    assert spec.lineage.startswith("local.t.")
    directories = local_directories(spec, run)
    assert directories.outputs == tmp_path / "outputs"
    assert directories.outputs.is_dir()
    own = local_spec({"outputs": "s3://b/o", "output_path": str(tmp_path / "runs")}, ["t.py"], tmp_path)
    assert local_directories(own, run).outputs == tmp_path / "runs"


@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="no memory file system")
def test_the_journal_is_not_in_the_volume_that_the_trainer_may_fill():
    run = create_run()
    try:
        assert run.data.parent == Path("/dev/shm")
        assert run.directory.path.name == run.data.name
        assert run.directory.path.stat().st_dev != run.data.stat().st_dev
        assert [path.stat().st_mode & 0o777 for path in (run.directory.path, run.data)] == [0o700, 0o700]
    finally:
        run.remove()
    assert not run.directory.path.exists()
    assert not run.data.exists()


def test_without_memory_both_are_in_one_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARED_MEMORY", tmp_path / "none")
    monkeypatch.setattr(module, "DISKS", ())
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    run = create_run()
    assert run.data == run.directory.path / "data"
    assert run.directory.path.name.startswith(f"podferry-{os.getuid()}-")


def test_a_place_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "memory_root", lambda: tmp_path)
    monkeypatch.setattr(module, "_run_root", lambda memory: tmp_path / "gone")
    with pytest.raises(Refused, match=r"No such file or directory.*set TMPDIR"):
        create_run()

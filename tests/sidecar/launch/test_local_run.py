"""Which local runs are one: paths, links, environments, directories, datasets."""

from __future__ import annotations

import os

import pytest

from podferry.contract.spec import DatasetSpec, FerrySpec
from podferry.sidecar.launch.local_run import lineage_of_run

DIGITS = FerrySpec(datasets=(DatasetSpec("s3://data/digits"),))


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A directory with a script, which is the working directory."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").touch()
    monkeypatch.chdir(work)
    return work


def program(path):
    """An executable file there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return str(path)


def test_links_to_the_script_and_the_directory_change_nothing(work, tmp_path, monkeypatch):
    lineage = lineage_of_run(["python", "train.py"], DIGITS)
    (tmp_path / "link").symlink_to(work)
    monkeypatch.chdir(tmp_path / "link")
    assert lineage_of_run(["python3", str(tmp_path / "link" / "train.py")], DIGITS) == lineage
    assert lineage_of_run(["python3", "other.py"], DIGITS) != lineage
    monkeypatch.chdir(tmp_path)
    assert lineage_of_run(["python", "work/train.py"], DIGITS) != lineage


def test_a_digest_changes_nothing_and_another_dataset_does(work):
    lineages = [
        lineage_of_run(["python", "train.py"], FerrySpec(datasets=tuple(map(DatasetSpec, references))))
        for references in (
            ["s3://data/digits"],
            ["s3://data/digits/?engine=fsspec#sha256=" + "0" * 64],
            ["s3://data/letters"],
            [],
        )
    ]
    assert lineages[0] == lineages[1]
    assert len(set(lineages)) == 3


def test_programs_of_environments_count_by_name_and_others_by_path(work, tmp_path, monkeypatch):
    venv, tool = program(tmp_path / "venv/bin/trainer"), program(tmp_path / "tools/trainer")
    (tmp_path / "venv/pyvenv.cfg").touch()
    named = lineage_of_run(["trainer", "x"], DIGITS)
    assert lineage_of_run([venv, "x"], DIGITS) == named
    assert lineage_of_run([tool, "x"], DIGITS) != named
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")
    assert lineage_of_run([tool, "x"], DIGITS) == named

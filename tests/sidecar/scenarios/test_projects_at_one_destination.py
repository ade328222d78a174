"""Projects that share a destination, as processes: who resumes from whom, and what is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from podferry.contract.lineage import former_local_lineage

TRAIN = """
import os, pathlib
restored = pathlib.Path(os.environ.get("PODFERRY_RESTORED", "nothing"))
print("resumed from", restored.read_text() if restored.exists() else "nothing")
(pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"]) / "epoch-1.txt").write_text(os.getcwd())
"""


class Done(NamedTuple):
    code: int
    resumed: str
    err: str


class Project:
    """A directory with a dataset and a `train.py`; all of them share one destination."""

    def __init__(self, home: Path, name: str, destination: Path) -> None:
        self.home, self.destination = home / name, destination
        (self.home / "data").mkdir(parents=True)
        (self.home / "data" / "a").write_text(f"of {name}")
        (self.home / "train.py").write_text(TRAIN)

    def run(self, *options: str, command: str = f"{sys.executable} train.py", dataset: str = "data") -> Done:
        places = ["--dataset", dataset, "--checkpoints", str(self.destination)]
        done = subprocess.run(
            [sys.executable, "-m", "podferry.cli.main", "run", *places, *options, "--", *command.split()],
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        print(done.stderr)
        return Done(done.returncode, done.stdout.strip().removeprefix("resumed from "), done.stderr)


@pytest.fixture
def project(tmp_path):
    return lambda name: Project(tmp_path, name, tmp_path / "durable")


def test_the_same_command_in_another_project_starts_from_the_beginning(project):
    first, second = project("first"), project("second")
    assert first.run().resumed == "nothing"
    assert second.run().resumed == "nothing"
    assert first.run().resumed == str(first.home)
    assert second.run().resumed == str(second.home)


def test_another_dataset_is_another_lineage_and_another_spelling_is_not(project, tmp_path):
    own = project("own")
    (own.home / "more").mkdir()
    (own.home / "more" / "b").write_text("b")
    (tmp_path / "link").symlink_to(own.home)
    environment = tmp_path / "venv" / "bin"
    environment.mkdir(parents=True)
    (environment / "python3.99").symlink_to(sys.executable)
    assert own.run().resumed == "nothing"
    assert own.run(dataset="more").resumed == "nothing"
    other = f"{environment}/python3.99 -u {tmp_path}/link/train.py"
    assert own.run(command=other, dataset=f"{own.home}/data/").resumed == str(own.home)


def test_a_named_lineage_refuses_another_dataset_and_names_the_way_out(project):
    own, named = project("own"), ("--lineage", "digits")
    assert own.run(*named).resumed == "nothing"
    (own.home / "more").mkdir()
    (own.home / "more" / "b").write_text("b")
    refused = own.run(*named, dataset="more")
    assert (refused.code, refused.resumed) == (78, "")
    assert f"file://{own.home}/data before, file://{own.home}/more now" in refused.err
    warm = refused.err.partition("add --restore ")[2].split()[0]
    assert own.run("--lineage", "letters", "--restore", warm, dataset="more").resumed == str(own.home)
    assert own.run(*named).resumed == str(own.home)


def test_new_content_is_reported_and_resumes(project):
    own = project("own")
    assert own.run().resumed == "nothing"
    (own.home / "data" / "a").write_text("other content")
    again = own.run()
    assert again.resumed == str(own.home)
    assert f"DATASET HAS CHANGED SINCE: file://{own.home}/data: sha256 " in again.err


def test_a_moved_project_and_the_lineage_of_an_earlier_version_are_named_with_what_takes_them(project):
    own = project("own")
    assert own.run("--lineage", former_local_lineage([sys.executable, "train.py"])).resumed == "nothing"
    began = own.run()
    assert began.resumed == "nothing"
    assert f"--lineage {former_local_lineage([sys.executable, 'train.py'])} (epoch-1 of " in began.err
    place = str(own.home)
    own.home = own.home.rename(own.home.with_name("moved"))
    moved = own.run()
    assert moved.resumed == "nothing"
    lines = [line.strip() for line in moved.err.splitlines() if line.startswith("  --lineage local.train.")]
    assert any(f"by {place}/train.py in {place} on " in line for line in lines)
    option, lineage = lines[0].split()[:2]
    assert own.run(option, lineage).resumed == place


def test_two_projects_in_one_lineage_do_not_remove_each_others_checkpoints(project):
    first, second, named = project("first"), project("second"), ("--lineage", "digits", "--keep-remote", "1")
    assert first.run(*named).code == 0
    commits = first.destination / "digits/.podferry/commits"
    (kept,) = commits.iterdir()
    for content in ("a", "b"):
        (second.home / "train.py").write_text(TRAIN.replace("os.getcwd()", repr(content)))
        assert second.run(*named, "--restore", "never").code == 0
    assert kept in commits.iterdir()
    assert len(list(commits.iterdir())) == 2

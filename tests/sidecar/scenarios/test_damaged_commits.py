"""Runs whose earlier checkpoints were damaged at the destination, by `podferry run`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

SAVE = """
import os, pathlib, sys
root = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
def save(step, **files):
    folder = root / f"{step}.tmp"
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    folder.rename(root / f"step-{step}")
"""


class Site:
    """A destination, and runs that save there."""

    def __init__(self, base: Path) -> None:
        self.remote = base / "remote"

    def podferry(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "podferry.cli.main", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def train(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        places = ["--lineage", "t", "--checkpoints", str(self.remote), *words]
        return self.podferry("run", *places, "--", sys.executable, "-c", SAVE + program)

    def damage(self, name: str) -> None:
        """Change a byte of each object of that name."""
        for path in self.remote.glob(f"t/step-*/*/{name}"):
            path.write_bytes(b"?" + path.read_bytes()[1:])

    def verify(self, sequence: int) -> str:
        """What a deep verification says of one commit."""
        lines = self.podferry("checkpoints", "verify", str(self.remote), "t", "--deep").stdout.splitlines()
        return next(line for line in lines if line.split()[1:2] == [str(sequence)])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_frozen_file_that_was_found_damaged_is_sent_again(site):
    frozen = "frozen=b'f' * 500_000, head=os.urandom(1000)"
    assert site.train(f"save(1, {frozen})").returncode == 0
    site.damage("frozen")
    again = site.train(f"save(2, {frozen}); save(3, {frozen})")
    assert "TRAINING STARTS FROM THE BEGINNING" in again.stderr
    assert [site.verify(number).split()[5] for number in (1, 2, 3)] == ["damaged", "intact", "intact"]


def test_a_training_that_repeats_a_damaged_checkpoint_commits_it_again(site):
    saves = "[save(step, w=bytes([step]) * 500_000) for step in (1, 2)]"
    assert site.train(saves).returncode == 0
    site.damage("w")
    again = site.train(saves)
    assert (again.returncode, "last durable checkpoint: step-2" in again.stderr) == (0, True)
    assert [site.verify(number).split()[5] for number in (2, 3, 4)] == ["damaged", "intact", "intact"]
    resumed = site.train("print(os.environ['PODFERRY_RESTORED'])")
    assert resumed.stdout.strip().endswith("step-2")

"""A small dataset, and `podferry run` over it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.run_command import TRAIN


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A dataset of two files."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("a", "b"):
        (data / name).write_bytes(os.urandom(5000))
    return data


@pytest.fixture
def command(tmp_path: Path, remote: Path) -> list[str]:
    """The words of a run of `TRAIN`, whose argument follows."""
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    places = ["--dataset", str(remote), "--checkpoints", str(tmp_path / "destination"), "--lineage", "t"]
    return [sys.executable, "-m", "podferry.cli.main", "run", *places, "--", sys.executable, str(script)]

"""Runs that start from the beginning though the lineage has checkpoints, by `podferry run`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE

SAVE = """
import os, pathlib, signal
root = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
def save(step, data):
    (root / "new.tmp").write_bytes(data)
    (root / "new.tmp").rename(root / f"ckpt-{step}.bin")
"""
DIE = "\nos.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture
def train(tmp_path):
    def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
        places = ["--lineage", "t", "--checkpoints", str(tmp_path / "remote"), *words]
        command = [sys.executable, "-m", "podferry.cli.main", "run", *places]
        return subprocess.run(
            [*command, "--", sys.executable, "-c", SAVE + program],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    return run


def test_the_next_run_resumes_from_its_first_weights_though_the_abandoned_run_had_the_same(train):
    assert (
        train(f"[save(step, b'init' if not step else b'first') for step in range(3)]{DIE}").returncode == 137
    )
    again = train(f"save(0, b'init'){DIE}", "--restore", "never")
    assert "last durable checkpoint: ckpt-0" in again.stderr
    shown = "print(os.environ['PODFERRY_RESTORED'], sorted(path.name for path in root.iterdir()))"
    resumed = train(shown)
    assert resumed.stdout.strip().endswith("ckpt-0.bin ['ckpt-0.bin']"), resumed.stderr
    assert "commit 4" in resumed.stderr

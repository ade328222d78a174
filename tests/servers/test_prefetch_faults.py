"""Prefetches through faults, from a real S3 server: the program, as `make fetches` runs it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_staged_files_are_correct_or_reported():
    command = [sys.executable, "-m", "faults.fetches", "--seed", "1", "--n", "8", "--store", "versitygw"]
    done = subprocess.run(
        command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=580, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong, missing, unnamed or stuck: 0" in done.stdout

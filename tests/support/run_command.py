"""`podferry run` as a process: what it trains, and what is at its destination afterwards."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE

TRAIN = """
import os, pathlib, sys
data = pathlib.Path(os.environ["PODFERRY_DATASET"])
checkpoints = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
print("files", sorted(path.name for path in data.iterdir()))
print("restored", os.path.basename(os.environ.get("PODFERRY_RESTORED", "nothing")))
print("file", [os.path.basename(line) for line in open(os.environ["PODFERRY_RESTORED_FILE"])])
print("lineage", os.environ["PODFERRY_LINEAGE"])
step = int(sys.argv[1])
(checkpoints / f"step-{step}.bin").write_bytes(b"weights of %d" % step)
"""
"""A program that says what it got, and writes a checkpoint of the step in its argument."""


def run(command: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, **more)


def newest(base: Path) -> dict[str, Any]:
    """The newest commit of the lineage `t` below `base`."""
    document: dict[str, Any] = json.loads((base / "destination/t/.podferry/latest.json").read_text())
    return document


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not so after {PATIENCE} s"
        time.sleep(0.02)

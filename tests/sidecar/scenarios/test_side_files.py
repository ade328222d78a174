"""Metrics and plots next to checkpoints, by `podferry run`: durable, but nobody resumes from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from podferry.contract.destination.commit import Commit, decode_commit

TRAINER = """
import json, os, pathlib, pickle, signal, sys, time
root = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
print("from", os.environ.get("PODFERRY_RESTORED", ""))
def write(name, data):
    (root / "x.tmp").write_bytes(data)
    os.replace(root / "x.tmp", root / name)
for epoch in range(1, int(sys.argv[1]) + 1):
    write(f"epoch_{epoch}.pkl", pickle.dumps(os.urandom(9000)))
    time.sleep(2)
    write("metrics.json", json.dumps({"epoch": epoch}).encode())
    time.sleep(2)
if sys.argv[2:]:
    os.kill(os.getpid(), signal.SIGKILL)
"""


class Site:
    def __init__(self, base: Path) -> None:
        self.remote = base / "remote"

    def run(self, words: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
        places = ["--checkpoints", str(self.remote), "--lineage", "t", *words]
        command = [sys.executable, "-m", "podferry.cli.main", "run", *places, "--"]
        return subprocess.run(
            [*command, sys.executable, "-c", TRAINER, *arguments],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            env={**os.environ, "PODFERRY_RESTORED": ""},
        )

    def commits(self) -> list[Commit]:
        paths = sorted((self.remote / "t/.podferry/commits").iterdir())
        return [decode_commit(path.read_bytes(), path.name) for path in paths]

    def cli(self, *words: str) -> str:
        command = [sys.executable, "-m", "podferry.cli.main", "checkpoints", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_retention_never_trades_weights_for_metrics(site: Site) -> None:
    done = site.run(["--keep-remote", "1"], "2")
    assert done.returncode == 0, done.stderr
    assert "last durable checkpoint: epoch_2" in done.stderr
    assert [commit.name for commit in site.commits()] == ["epoch_2", "metrics"]
    assert json.loads(site.cli("ls", str(site.remote), "-o", "json"))[0]["newest"]["name"] == "epoch_2"


def test_a_run_resumes_from_weights_not_from_metrics(site: Site) -> None:
    assert site.run([], "1", "crash").returncode != 0
    assert site.commits()[-1].name == "metrics"
    resumed = site.run([], "0")
    assert "resuming from epoch_1" in resumed.stderr, resumed.stderr
    assert resumed.stdout.split()[-1].endswith("/epoch_1.pkl")

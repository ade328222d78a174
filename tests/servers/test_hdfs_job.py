"""A job on HDFS as docs/stores/hdfs.md shows it: data down, train, outputs up under the job's name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hadoop import Hadoop
from tests.support.patience import PATIENCE

TRAIN = """
import os, pathlib, sys
data, outputs, checkpoints = (
    pathlib.Path(os.environ[f"PODFERRY_{name}"]) for name in ("DATASET", "OUTPUTS", "CHECKPOINTS")
)
total = sum(len(file.read_bytes()) for file in data.rglob("*.bin"))
restored = os.environ.get("PODFERRY_RESTORED")
(checkpoints / "weights.tmp").write_text(str(total))
(checkpoints / "weights.tmp").rename(checkpoints / "weights.json")
(outputs / "logs").mkdir()
(outputs / "logs" / "train.log").write_text(f"{total} bytes, restored {bool(restored)}")
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def job(hadoop: Hadoop, fresh: str, tmp_path: Path):
    """Runs the job of a name that ends with a code; what it printed."""
    (tmp_path / "digits").mkdir()
    for number in range(20):
        (tmp_path / "digits" / f"{number} #.bin").write_bytes(b"x" * 1000 * number)
    hadoop.shell("-mkdir", "-p", f"/{fresh}")
    hadoop.shell("-put", str(tmp_path / "digits"), f"/{fresh}/digits")
    (tmp_path / "train.py").write_text(TRAIN)
    root = f"hdfs://{hadoop.address}/{fresh.replace('%', '%25')}"

    def run(name: str, code: int, *more: str) -> subprocess.CompletedProcess[str]:
        places = ["--dataset", f"{root}/digits", "--outputs", f"{root}/jobs/{name}/outputs"]
        words = ["run", *places, "--checkpoints", f"{root}/jobs/{name}/checkpoints", "--lineage", name, *more]
        command = [
            sys.executable,
            "-m",
            "podferry.cli.main",
            *words,
            "--",
            sys.executable,
            "train.py",
            str(code),
        ]
        own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HADOOP_USER_NAME": "root"}
        return subprocess.run(
            command, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    return run


def names(hadoop: Hadoop, folder: str) -> set[str]:
    """Paths of the files below a directory, relative to it."""
    lines = hadoop.shell("-ls", "-R", "-C", folder).splitlines()
    return {line.removeprefix(f"{folder}/") for line in lines}


@pytest.mark.parametrize("code", [0, 3])
def test_outputs_are_under_the_jobs_name_also_when_training_fails(
    job, hadoop: Hadoop, fresh: str, code: int
) -> None:
    name = f"digits-{code}"
    done = job(name, code)
    assert done.returncode == code, done.stderr
    folder = f"/{fresh}/jobs/{name}"
    assert {"outputs/logs/train.log", "outputs/.podferry/outputs.json"} <= names(hadoop, folder)
    assert hadoop.shell("-cat", f"{folder}/outputs/logs/train.log") == "190000 bytes, restored False"
    assert f'"exit_code": {code}' in hadoop.shell("-cat", f"{folder}/outputs/.podferry/outputs.json")
    assert any("/.podferry/commits/" in each for each in names(hadoop, folder))
    again = job(name, 0)
    assert again.returncode == 0, again.stderr
    if not code:  # what a failing program has written may be doubtful, and is not resumed from by itself
        assert hadoop.shell("-cat", f"{folder}/outputs/logs/train.log") == "190000 bytes, restored True"

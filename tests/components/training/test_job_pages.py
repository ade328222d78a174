"""The examples of `train_job`'s and `paddle_job`'s pages compile, and their metadata is complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

TRAINING = Path(__file__).parents[3] / "components" / "training"


@pytest.mark.parametrize("name", ["train_job", "paddle_job"])
def test_the_example_compiles(name: str, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (TRAINING / name / "README.md").read_text(), re.DOTALL)
    script = tmp_path / "pipeline.py"
    script.write_text(code)
    subprocess.run([sys.executable, script.name], cwd=tmp_path, check=True, timeout=100)
    (compiled,) = tmp_path.glob("*.yaml")
    pipeline, _ = yaml.safe_load_all(compiled.read_text())
    assert set(pipeline["root"]["dag"]["tasks"]) == {"dataset", name.replace("_", "-"), "verify-checkpoint"}


@pytest.mark.parametrize("name", ["train_job", "paddle_job"])
def test_the_folder_is_complete(name: str) -> None:
    folder = TRAINING / name
    metadata = yaml.safe_load((folder / "metadata.yaml").read_text())
    assert metadata["name"] == name
    assert metadata.keys() >= {"tier", "stability", "dependencies", "tags", "lastVerified", "links"}
    assert set(yaml.safe_load((folder / "OWNERS").read_text())) == {"approvers", "reviewers"}

"""What kfp compiles is the same in all versions that can: undeclared inputs, and the golden files.

`make test-kfp` installs each version into a folder of its own, and needs a package index.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = {"2.14.1": "2.14.0", "2.15.2": "2.15.2", "2.16.1": "2.16.1", "2.17.0": "2.17.0"}
"""Versions of kfp, and of kfp-kubernetes. Before 2.14.1 there was none of the same train."""
TESTS = ("training/gpu_train", "training/test_undeclared_inputs.py", "test_compile.py")


@pytest.mark.parametrize("name", TESTS)
def test_what_runs_with_each_version_exists(name: str) -> None:
    """The test below runs only where there is a package index."""
    assert (ROOT / "tests" / "components" / name).exists()


@pytest.mark.kfp
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_pipelines_compile_alike(version: str, tmp_path: Path) -> None:
    requirements = [f"kfp=={version}", f"kfp-kubernetes=={VERSIONS[version]}"]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tmp_path), *requirements]
    subprocess.run(install, check=True, timeout=600)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    seen = subprocess.check_output(
        [sys.executable, "-c", "import kfp; print(kfp.__version__)"], env=environ, text=True
    )
    assert seen.strip() == version
    command = [
        str(Path(sys.executable).with_name("pytest")),
        "-q",
        "-m",
        "programs",
        *(str(ROOT / "tests" / "components" / name) for name in TESTS),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout

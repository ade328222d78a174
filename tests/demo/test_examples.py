"""Each example pipeline, run to its end as `make demo PIPELINE=NAME` does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from demo.examples.show import EXAMPLES, load
from demo.failure import DemoError

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(600)


def run(name, build):
    command = [sys.executable, "-m", "demo", "--build", str(build), "--pipeline", name]
    return subprocess.run(
        command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=500, check=False
    )


@pytest.mark.examples
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_keeps_what_it_promises(name, tmp_path):
    done = run(name, tmp_path)
    logs = "\n".join(log.read_text() for log in sorted((tmp_path / name).glob("*.log")))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{logs}"
    assert "Imitated: " in done.stdout
    assert "Report" in done.stdout


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path):
    done = run("read-write-splt", tmp_path)
    assert done.returncode == 1
    assert "read-write-split" in done.stdout


def test_a_missing_package_is_named_and_nothing_is_installed(monkeypatch):
    example = load("read-write-split")
    monkeypatch.setattr(type(example), "packages", ("numpy", "no_such_package"))
    with pytest.raises(DemoError, match="needs no_such_package, which is not installed"):
        load("read-write-split")

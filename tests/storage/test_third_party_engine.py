"""Somebody else adds a scheme in a package, whose tests run the contract: the examples of docs/engines.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/engines.md"
STORE = """
from podferry.storage.memory.store import MemoryStore


class TapeStore(MemoryStore):
    def __init__(self, uri, config, limits):
        super().__init__(uri)
"""
PYTEST_INI = "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package of the page, installed in a directory, with the page's test."""
    engine, test = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    entry = re.search(r'\[project\.entry-points\."(.*?)"\]\n(.*?)\n```', PAGE.read_text(), re.DOTALL)
    assert entry is not None
    files = {
        "podferry_tape/__init__.py": "",
        "podferry_tape/engine.py": engine,
        "podferry_tape/store.py": STORE,
        "podferry_tape-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: podferry-tape\nVersion: 1\n",
        "podferry_tape-1.dist-info/entry_points.txt": f"[{entry[1]}]\n{entry[2].replace(chr(34), '')}\n",
        "test_tape.py": test,
        "pytest.ini": PYTEST_INI,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(package: Path, *words: str) -> str:
    """What a module of Python prints where the package is installed."""
    command = [sys.executable, "-m", *words]
    environ = {"PYTHONPATH": str(package), "PATH": "/usr/bin:/bin", "HOME": str(package)}
    done = subprocess.run(
        command, cwd=package, env=environ, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_scheme_opens_and_the_contract_runs(package: Path) -> None:
    assert "ok       engine            tape; credentials: none of TAPE_TOKEN" in run(
        package, "podferry.cli.main", "doctor", "tape://drive-1/x"
    )
    ended = run(package, "pytest", "-q", "-p", "no:cacheprovider")
    passed = re.search(r"(\d+) passed", ended)
    assert passed is not None
    assert int(passed[1]) > 50


def test_a_store_that_breaks_the_contract_fails(package: Path) -> None:
    broken = STORE + "\n    async def delete(self, names):\n        pass\n"
    (package / "podferry_tape/store.py").write_text(broken)
    with pytest.raises(AssertionError, match="test_delete_ignores_missing_objects"):
        run(package, "pytest", "-q", "-p", "no:cacheprovider", "-k", "delete or emptied")

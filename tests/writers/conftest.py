"""Tests with the real frameworks (`pytest -m writers`); imitated ones need only Python.

The frameworks may be installed for another interpreter, `PODFERRY_WRITERS_PYTHON`. Tests of missing ones are
skipped, or fail if `PODFERRY_WRITERS_REQUIRED` is set, as by `make test-writers`.
"""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.append(str(HERE))
OFFLINE = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(HERE / "programs"),
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the marks
def pytest_collection_modifyitems(items):
    for item in (item for item in items if HERE in item.path.parents):
        item.add_marker(pytest.mark.writers)
        item.add_marker(pytest.mark.timeout(600))  # some take a minute to import


@pytest.fixture(autouse=True)
def no_threads(monkeypatch):
    """Forked judges have none: what an agent does in a thread happens at once."""

    async def at_once(function, *arguments, **named):
        return function(*arguments, **named)

    monkeypatch.setattr(asyncio, "to_thread", at_once)


@pytest.fixture(scope="session")
def interpreter():
    return os.environ.get("PODFERRY_WRITERS_PYTHON") or sys.executable


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "tmp").mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, **OFFLINE, "TMPDIR": str(tmp_path / "tmp")}


@pytest.fixture
def needed(interpreter):
    """Skip or fail if the interpreter lacks one of these modules."""

    def check(*modules):
        if platform.system() != "Linux":
            pytest.skip("the tracer needs seccomp(2)")
        finds = f"import importlib.util as u; print(*[m for m in {modules!r} if not u.find_spec(m)])"
        done = subprocess.run([interpreter, "-c", finds], capture_output=True, text=True, check=True)
        missing = done.stdout.split()
        if missing and os.environ.get("PODFERRY_WRITERS_REQUIRED"):
            pytest.fail(f"{interpreter} has no {', '.join(missing)}")
        if missing:
            pytest.skip(f"{interpreter} has no {', '.join(missing)}")

    return check

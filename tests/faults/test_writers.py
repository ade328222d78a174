import importlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from faults.known import KNOWN, available
from faults.writers.frame import Ledger, differs, expected, files_below
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
HERE = {
    "numpy_savez": "Savez",
    "joblib_dump": "Dump",
    "joblib_in_place": "InPlace",
    "safetensors_sharded": "Sharded",
    "flat_pickles": "Flat",
    "flat_numbered": "Numbered",
    "flat_renamed": "Renamed",
    "directory_slow": "Slow",
    "directory_in_place": "InPlace",
    "directory_renamed": "Renamed",
    "raw_in_place": "InPlace",
    "raw_numbered": "Numbered",
    "memmap_in_place": "Mapped",
    "memmap_numbered": "Mapped",
    "zip_members": "Members",
    "json_state": "State",
    "last_and_best": "LastAndBest",
    "pickle_dump": "Dump",
    "accelerate_like": "SaveState",
    "trainer_like": "Directory",
    "dcp_like": "Distributed",
}
"""Writers whose libraries the tests have anyway."""


def made(name, root):
    return getattr(importlib.import_module(f"faults.writers.{name}"), HERE[name])(root)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Writers read the sizes of their tensors from the command line; some pause in a save."""
    monkeypatch.setattr("sys.argv", ["trainer", "--seed", "7", "--count", "1000"])
    monkeypatch.setattr("time.sleep", lambda _: None)


@pytest.fixture(params=HERE)
def writer(request, tmp_path):
    return made(request.param, tmp_path)


def test_what_was_saved_is_loaded(writer):
    assert writer.load() is None
    for step in (1, 2):
        writer.save(step, expected(7, step, 1000))
    step, tensors = writer.load()
    assert step == 2
    assert differs(tensors, expected(7, 2, 1000)) is None
    assert differs(tensors, expected(7, 1, 1000)) is not None
    assert differs(tensors, expected(8, 2, 1000)) is not None


def test_a_save_names_all_its_files(writer):
    (paths,) = writer.save(3, expected(7, 3, 1000))
    assert set(files_below(paths, writer.root)) == set(files_below([writer.root], writer.root))


@pytest.mark.parametrize("name", HERE)
def test_the_librarys_check_detects_an_incomplete_save(name, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["trainer", "--seed", "7", "--count", "100000"])
    writer = made(name, tmp_path)
    writer.save(4, expected(7, 4, 100_000))
    command = [sys.executable, "-m", f"faults.writers.{name}", "--check", str(tmp_path)]
    command += ["--seed", "7", "--count", "100000"]
    complete = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert int(complete.stdout) == 4
    largest = max(tmp_path.rglob("*.*"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False).returncode


def test_a_missing_tensor_differs():
    tensors = expected(7, 1, 10)
    assert differs({name: tensors[name] for name in list(tensors)[1:]}, tensors) == next(iter(tensors))


def test_the_ledger_grows_by_lines(tmp_path):
    for _ in range(2):
        ledger = Ledger(tmp_path / "ledger")
        ledger.note("begin", 1)
        ledger.note("finish", 1, checkpoints=[])
    lines = [json.loads(line) for line in (tmp_path / "ledger").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["begin", "finish"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="a timer of Linux")
def test_the_kernel_kills_also_where_python_does_not_run():
    program = (
        "from faults.writers.frame import kill_after\n"
        "import re\n"
        "kill_after(0.05)\n"
        "re.match('(a*)*b', 'a' * 60)"  # holds the interpreter's lock for ever
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=PATIENCE, check=False)
    assert done.returncode == -signal.SIGKILL


def test_every_writer_has_its_program():
    assert {f"{name}.py" for name in KNOWN} | {"__init__.py", "frame.py", "layouts.py"} == {
        path.name for path in (ROOT / "faults" / "writers").glob("*.py")
    }


def test_this_python_has_writers(monkeypatch, tmp_path):
    monkeypatch.setenv("PODFERRY_WRITERS_PYTHON", str(tmp_path / "none"))
    found = available(KNOWN)
    assert set(HERE) <= set(found)
    assert set(found.values()) == {Path(sys.executable)}

"""The command of this process: its own processes, and the ways in which notebooks start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from podferry.contract.program import read_program
from podferry.sidecar.launch.local_run import program_of
from podferry.trainer.this_program import command_of
from tests.support.patience import PATIENCE

PRINT = (
    "import json; from podferry.trainer.this_program import this_command; print(json.dumps(this_command()))"
)
SPAWN = """
import multiprocessing, os
def work():
    from podferry.trainer.this_program import this_command
    import json
    print(json.dumps(this_command()), flush=True)
if __name__ == "__main__":
    os.chdir("/")
    work()
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
"""


@pytest.fixture
def started(tmp_path: Path):  # type: ignore[no-untyped-def]
    def start(*words: str) -> list[list[str]]:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    for name in ("train.py", "package/train.py", "package/__main__.py"):
        (tmp_path / name).write_text(PRINT)
    return start


def test_code_modules_and_standard_input_are_known(started) -> None:  # type: ignore[no-untyped-def]
    assert started("-c", PRINT, "x") == [["python", "-c", PRINT, "x"]]
    assert started("-um", "package.train", "--lr", "1") == [["python", "-m", "package.train", "--lr", "1"]]
    assert started("-m", "package") == [["python", "-m", "package"]]


def test_a_script_keeps_its_path_in_another_directory_and_in_spawned_processes(  # type: ignore[no-untyped-def]
    started, tmp_path: Path
) -> None:
    script = tmp_path / "moves.py"
    script.write_text(SPAWN)
    commands = started("moves.py", "--lr", "1")
    assert commands == [["python", str(script), "--lr", "1"]] * 2
    under_podferry_run = ["/venv/bin/python3", "-u", str(script), "--lr", "1"]
    assert program_of(commands[0]) == program_of(under_podferry_run)


def test_a_notebook_is_known_by_its_path_and_else_by_its_kernel() -> None:
    kernel = ["/x/ipykernel_launcher.py", "-f", "/run/kernel-1.json"]
    jupyter = {"JPY_SESSION_NAME": "/work/a.ipynb"}
    assert command_of(kernel, [], {}, jupyter) == ["jupyter", "/work/a.ipynb"]
    assert command_of(kernel, [], {"__vsc_ipynb_file__": "/work/b.ipynb"}, {}) == ["jupyter", "/work/b.ipynb"]
    assert command_of(kernel, [], {}, {}) == ["python", *kernel]
    assert command_of(kernel, [], {}, {"JPY_SESSION_NAME": "console-1-a"}) == ["python", *kernel]
    assert command_of(["/work/train.py"], [], {}, jupyter) == ["python", "/work/train.py"]


def test_an_interactive_interpreter_and_a_program_without_a_suffix() -> None:
    assert command_of([""], ["python3"], {}, {}) == ["python"]
    assert command_of(["-"], ["python3", "-"], {}, {}) == ["python"]
    assert read_program(command_of(["/venv/bin/trainer", "x"], [], {}, {})).label == "trainer"

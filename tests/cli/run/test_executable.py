"""Commands that cannot be started, as shells number them."""

import errno
from pathlib import Path

import pytest

from podferry.cli.run.executable import exec_problem, start_problem
from tests.support.run_command import run


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Write `train.py` with a first line and a mode, and be in its directory."""
    monkeypatch.chdir(tmp_path)

    def write(first, mode=0o755):
        (tmp_path / "train.py").write_bytes(first)
        (tmp_path / "train.py").chmod(mode)

    return write


def test_what_can_be_started_has_no_problem(script):
    script(b"#!/bin/sh -e\n")
    assert start_problem("./train.py") is None
    assert start_problem("sh") is None


@pytest.mark.parametrize(
    ("word", "code", "text"),
    [
        ("./train.py", 126, "it is not executable). Run `chmod +x ./train.py`, or -- python ./train.py."),
        ("train.py", 127, "no such program in PATH). Write -- ./train.py, or -- python train.py."),
        (".", 127, "no such program in PATH). Check its spelling, and PATH."),
        ("./", 126, "it is a directory"),
        ("./missing", 127, "there is no such file"),
        ("pyhton", 127, "Check its spelling"),
    ],
)
def test_shells_have_codes_for_it(script, word, code, text):
    script(b"#!/bin/sh\n", 0o644)
    found, problem = start_problem(word)
    assert found == code
    assert text in str(problem)


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (b"#!/no/such/python\n", "its interpreter '/no/such/python' does not exist). Correct the first line"),
        (
            b"#!/bin/sh\r\n",
            "its interpreter '/bin/sh\\r' does not exist). Save it with the line ends",
        ),
    ],
)
def test_a_missing_interpreter_is_named(script, first, text):
    script(first)
    code, problem = start_problem("./train.py")
    assert code == 126
    assert text in str(problem)


def test_what_the_kernel_refuses():
    code, problem = exec_problem("./t", OSError(errno.ENOEXEC, "Exec format error"))
    assert code == 126
    assert "Begin a script with a line such as #!/bin/sh." in str(problem)
    assert exec_problem("./t", OSError(errno.ENOENT, "No such file or directory"))[0] == 127
    assert exec_problem("./t", OSError(errno.EACCES, "Permission denied"))[0] == 126


def test_a_command_that_does_not_exist(command: list[str]) -> None:
    done = run([*command[: command.index("--") + 1], "no-such-program"])
    assert done.returncode == 127
    assert "no-such-program cannot be started" in done.stderr


def test_a_missing_command_is_reported_before_anything_is_fetched(command: list[str], tmp_path: Path) -> None:
    at = command.index("--")
    named = [*command[:at], "--dataset-path", str(tmp_path / "stage"), "--", "no-such-program"]
    assert run(named).returncode == 127
    assert not (tmp_path / "stage").exists()

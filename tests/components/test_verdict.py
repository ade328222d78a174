"""A step that refuses prints its problems and exits; a bug keeps its traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from podferry.components.verdict import verdict
from podferry.contract.errors import InvalidSpec, Problem
from podferry.trainer import DoubtfulError


def refuse() -> None:
    raise InvalidSpec(Problem("no bucket", "s3://x", "Create it"), Problem("no key"))


def doubt() -> None:
    raise DoubtfulError.of("unproven")


def test_the_result_is_returned() -> None:
    assert verdict(pow, 2, 10) == 1024


def test_all_problems_are_printed_and_the_step_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        verdict(refuse)
    assert caught.value.code == 1
    assert capsys.readouterr().out == "error: no bucket (s3://x). Create it.\nerror: no key.\n"


def test_an_error_with_an_exit_code_of_its_own_ends_with_it() -> None:
    with pytest.raises(SystemExit) as caught:
        verdict(doubt)
    assert caught.value.code == 76


def test_no_traceback_is_shown() -> None:
    code = (
        "from podferry.components.verdict import verdict\n"
        "from podferry.components.data.dataset.runner import freeze_dataset\n"
        "verdict(freeze_dataset, 's3:/typo')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("error: ")
    assert "Traceback" not in done.stdout + done.stderr


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        verdict(divmod, 1, 0)

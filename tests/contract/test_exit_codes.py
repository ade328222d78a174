"""The page documents the exit codes that there are, and no others."""

import re
from pathlib import Path

from podferry.contract import exit_codes

PAGE = (Path(__file__).parents[2] / "docs/exit-codes.md").read_text()


def test_the_page_has_every_exit_code_and_no_other():
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    defined = {value for name, value in vars(exit_codes).items() if name.startswith("EXIT_")}
    assert documented == {0, *defined}


def test_no_two_names_have_one_value():
    values = [value for name, value in vars(exit_codes).items() if name.startswith("EXIT_")]
    assert len(values) == len(set(values))

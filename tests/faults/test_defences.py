"""The defences that sabotage removes are found by name: a rename must reach it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = re.findall(r'_everywhere\("(\w+)"', (ROOT / "faults/defences.py").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_a_replaced_function_is_defined_and_used_in_the_sidecar(name: str) -> None:
    packages = ("contract", "storage", "sidecar")
    sources = {path: path.read_text() for package in packages for path in (ROOT / package).rglob("*.py")}
    assert any(re.search(rf"^(async )?def {name}\(", text, re.MULTILINE) for text in sources.values())
    assert any(
        re.search(rf"\b{name}\b", text) for path, text in sources.items() if ROOT / "sidecar" in path.parents
    )

"""What importing the functions of `podferry.components` loads; benchmarks/imports.py measures it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from podferry.components import MODULES

IN_TRAININGS = {"Ferry", "ferry", "Prepared", "prepared"}
"""Names that a training uses, which loads the agent's code then."""
COMPOSING = sorted(MODULES.keys() - IN_TRAININGS)
LOADED = """
import sys
from podferry.components import {name}
print(*sorted(one for one in sys.modules if one == "msgspec" or one.startswith("podferry.")))
"""
LIGHT = ("podferry.components", "podferry.contract.extras")


@pytest.mark.parametrize("name", COMPOSING)
def test_what_composes_a_pipeline_loads_little(name: str) -> None:
    """Parsing values, above all msgspec, takes longer than all the rest."""
    command = [sys.executable, "-c", LOADED.format(name=name)]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert [one for one in loaded if not one.startswith(LIGHT)] == []

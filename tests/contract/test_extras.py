import tomllib
from pathlib import Path

import pytest

from podferry.contract.extras import EXTRA_OF, missing_extra

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", sorted(EXTRA_OF))
def test_a_missing_module_is_named_with_the_command_that_installs_it(module):
    problem = missing_extra(ModuleNotFoundError("No module", name=f"{module}.x509"))
    assert str(problem) == (
        f"{module} is not installed (No module). Run: pip install 'podferry[{EXTRA_OF[module]}]'."
    )


def test_other_modules_are_defects():
    assert missing_extra(ModuleNotFoundError("No module named 'x'", name="x")) is None
    assert missing_extra(ImportError("cannot import name")) is None


def test_the_extras_install_these_packages():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for module, extra in EXTRA_OF.items():
        assert any(package.startswith(module) for package in extras[extra])

"""Imports top-level folders that are not in the distribution, such as `demo` and `faults`.

The root itself on the path would also expose `contract` and others, which are `podferry.contract` and so on.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def load(*names: str) -> None:
    """Make these folders importable packages."""
    for name in names:
        if name not in sys.modules:
            _load(name, ROOT / name)


def _load(name: str, folder: Path) -> None:
    found = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert found
    assert found.loader
    sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(sys.modules[name])

"""The writers that can take part."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PYTHON_VARIABLE = "PODFERRY_WRITERS_PYTHON"
VENV = Path("podferry", "writers", "bin", "python")
"""Where in the user's cache `make test-writers` puts the libraries, none of which podferry itself needs."""
SECONDS = 120.0
"""That an import may take: the largest of them are slow on a cold disk."""


@dataclass(frozen=True, slots=True)
class Known:
    """A writer.

    Attributes:
        name: Of its module in `faults.writers`.
        library: What must be importable.
        weight: How often it is taken, against the others: some take ten seconds to be imported.
        in_place: Whether it overwrites a file of the same name.
        real: Whether the library itself writes, rather than an imitation.
    """

    name: str
    library: str
    weight: int
    in_place: bool = False
    real: bool = True


KNOWN: Mapping[str, Known] = {
    writer.name: writer
    for writer in (
        Known("numpy_savez", "numpy", 4),
        Known("safetensors_sharded", "safetensors.numpy", 4),
        Known("joblib_dump", "joblib", 4),
        Known("joblib_in_place", "joblib", 4, in_place=True),
        Known("flat_pickles", "numpy", 4, in_place=True),
        Known("flat_numbered", "numpy", 4),
        Known("flat_renamed", "numpy", 4, in_place=True),
        Known("directory_slow", "numpy", 4),
        Known("directory_in_place", "numpy", 4, in_place=True),
        Known("directory_renamed", "numpy", 4),
        Known("raw_in_place", "numpy", 4, in_place=True),
        Known("raw_numbered", "numpy", 4),
        Known("memmap_in_place", "numpy", 4, in_place=True),
        Known("memmap_numbered", "numpy", 4),
        Known("zip_members", "numpy", 4),
        Known("json_state", "numpy", 4),
        Known("last_and_best", "numpy", 4, in_place=True),
        Known("pickle_dump", "numpy", 4),
        Known("accelerate_like", "safetensors.numpy", 4, real=False),
        Known("trainer_like", "safetensors.numpy", 4, real=False),
        Known("dcp_like", "numpy", 4, real=False),
        Known("torch_save", "torch", 4, in_place=True),
        Known("torch_dcp", "torch", 2),
        Known("orbax_manager", "orbax.checkpoint", 4),
        Known("paddle_save", "paddle", 4),
        Known("tensorflow_saver", "tensorflow", 2),
        Known("lightning_fabric", "lightning", 1, in_place=True),
        Known("transformers_trainer", "transformers", 1),
    )
}


def pythons() -> list[Path]:
    """The interpreters to look into: the one with the libraries, if there is one, then this one."""
    given = os.environ.get(PYTHON_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    first = Path(given) if given else cache / VENV
    return [*([first] if first.exists() else []), Path(sys.executable)]


def available(names: Iterable[str]) -> dict[str, Path]:
    """The interpreter that has each writer's library; writers that nobody has are left out."""
    found: dict[str, Path] = {}
    for python in pythons():
        missing = {name: KNOWN[name].library for name in names if name not in found}
        present = _importable(python, set(missing.values()))
        found |= {name: python for name, library in missing.items() if library in present}
    return {name: found[name] for name in KNOWN if name in found}


def _importable(python: Path, libraries: set[str]) -> set[str]:
    """Which of them an interpreter finds; nothing is imported, which would take a minute."""
    program = (
        "import sys, importlib.util as u\n"
        "print(*(n for n in sys.argv[1:] if u.find_spec(n.partition('.')[0])))"
    )
    done = subprocess.run(
        [python, "-c", program, *libraries], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    return set(done.stdout.split())

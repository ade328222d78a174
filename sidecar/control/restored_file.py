"""The file from which a trainer reads what it resumes from."""

from __future__ import annotations

import os
from pathlib import Path

from podferry.contract.http_api import RESTORED_VARIABLE, Gate

READABLE = 0o644
"""The trainer may be another user than the gate."""


def write_restored(gate: Gate, path: Path) -> None:
    """Write one line, the path to resume from, or nothing for a fresh start.

    The file is renamed into place: a reader finds all of it or none. Raises `OSError`.
    """
    restored = gate.environment.get(RESTORED_VARIABLE)
    partial = path.with_name(f".{path.name}")
    partial.write_text(f"{restored}\n" if restored else "")
    partial.chmod(READABLE)
    os.replace(partial, path)  # noqa: PTH105

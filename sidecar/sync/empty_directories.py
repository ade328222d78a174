"""Removes empty local directories: as in an object store, only files count at a destination."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def remove_empty_directories(root: Path, names: Iterable[str]) -> None:
    """Remove the directories that have these names, with those below them, as far as all are empty.

    Args:
        root: What the names are relative to.
        names: Of files that will be written.
    """
    for name in names:
        for folder, _, _ in os.walk(root / name, topdown=False):
            with suppress(OSError):  # it has a file, or another program has removed it
                Path(folder).rmdir()

"""Bundles: many small files of a dataset in one response of a holder. Pure.

A bundle is the files' bytes, one after the other. It is named by their positions in the manifest, such as
`0-7,12`, so that any selection of files can be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_FILES = 256
"""Of a bundle: a holder reads them in some milliseconds, while its other readers wait."""
MAX_BYTES = 240 * 1024
"""Of a bundle: with its head it fits into the buffer of one connection of the fetch engine."""
MAX_FILE_BYTES = 64 * 1024
"""Of a file in a bundle. For a larger one, a request of its own costs little compared with its bytes."""
NAME = re.compile(r"\d{1,10}(?:-\d{1,10})?(?:,\d{1,10}(?:-\d{1,10})?)*", re.ASCII)


def bundle_name(positions: Iterable[int]) -> str:
    """The name of a bundle with the files at these ascending positions."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and position == runs[-1][1] + 1:
            runs[-1][1] = position
        else:
            runs.append([position, position])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def bundle_positions(name: str) -> tuple[int, ...] | None:
    """The positions of a bundle's files, or None for what no reader names: unordered, or too many."""
    if NAME.fullmatch(name) is None:
        return None
    found: list[int] = []
    for run in name.split(","):
        first, _, last = run.partition("-")
        positions = range(int(first), int(last or first) + 1)
        if not positions or len(found) + len(positions) > MAX_FILES or (found and positions[0] <= found[-1]):
            return None
        found += positions
    return tuple(found)

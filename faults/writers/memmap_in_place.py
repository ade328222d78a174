"""`last.npy`, mapped into memory: every save assigns to the mapping and flushes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

from faults.writers.frame import Tensors, Writer, main, parse
from faults.writers.layouts import sizes

CHUNK = 1 << 16
"""Elements of one assignment."""


class Mapped(Writer):
    """All tensors in one array, and the step behind them."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        path, numbers = (
            self.root / "last.npy",
            np.concatenate([*tensors.values(), np.array([step], np.float32)]),
        )
        mode = "r+" if path.exists() else "w+"
        held = open_memmap(path, mode, dtype=np.float32, shape=None if mode == "r+" else numbers.shape)
        for start in range(0, len(numbers), CHUNK):
            held[start : start + CHUNK] = numbers[start : start + CHUNK]
        held.flush()
        return [[path]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        path, counts = self.root / "last.npy", sizes(parse().count)
        if not path.exists():
            return None
        *found, step = np.split(np.load(path), np.cumsum(list(counts.values())))
        return int(step[0]), dict(zip(counts, found, strict=True))

    def forget(self, step: int) -> None:
        """Nothing: the next save takes its place."""


if __name__ == "__main__":
    main(Mapped)

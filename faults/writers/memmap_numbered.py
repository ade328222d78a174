"""`step-12.npy`: a new file for each step, which has its full size before it is written through a mapping."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

from faults.writers.frame import Tensors, main, parse
from faults.writers.layouts import Stepped, sizes

CHUNK = 1 << 16
"""Elements of one assignment."""


class Mapped(Stepped):
    """All tensors in one array; the step is in the name."""

    def path(self, step: int) -> Path:
        """See `Stepped.path`."""
        return self.root / f"step-{step:06}.npy"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        numbers = np.concatenate(list(tensors.values()))
        held = open_memmap(self.path(step), "w+", dtype=np.float32, shape=numbers.shape)
        for start in range(0, len(numbers), CHUNK):
            held[start : start + CHUNK] = numbers[start : start + CHUNK]
        held.flush()
        return [[self.path(step)]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        path, counts = self.newest(), sizes(parse().count)
        if path is None:
            return None
        found = np.split(np.load(path), np.cumsum(list(counts.values()))[:-1])
        return int(path.stem[5:]), dict(zip(counts, found, strict=True))


if __name__ == "__main__":
    main(Mapped)

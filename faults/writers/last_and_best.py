"""`last.npz` by every save and `best.npz` by every second one, both overwritten in place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from faults.writers.frame import Tensors, Writer, main
from faults.writers.layouts import read_archive


class LastAndBest(Writer):
    """Two checkpoints, of which one may be older."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        paths = [self.root / "last.npz", *([self.root / "best.npz"] if step % 2 == 0 else [])]
        for path in paths:
            np.savez(path, step=np.int64(step), **tensors)
        return [[path] for path in paths]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        found = [read_archive(path) for path in self.root.glob("*.npz")]
        return max(found, key=lambda held: held[0], default=None)

    def forget(self, step: int) -> None:
        """Nothing: the next saves take their places."""


if __name__ == "__main__":
    main(LastAndBest)

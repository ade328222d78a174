"""`model.pkl`, `optimizer.pkl` and `scheduler.pkl` side by side, overwritten in place by every save."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

from faults.writers.frame import Tensors, Writer, main
from faults.writers.layouts import WEIGHT, chosen, merged

PARTS = {"model.pkl": (WEIGHT,), "optimizer.pkl": ("layer0", "layer1"), "scheduler.pkl": ("layer2",)}


class Flat(Writer):
    """Three files that are one checkpoint."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        for name, held in PARTS.items():
            with (self.root / name).open("wb") as file:
                pickle.dump((step, chosen(tensors, held)), file)
        return [[self.root / name for name in PARTS]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        if not any(self.root.glob("*.pkl")):
            return None
        return merged([pickle.loads((self.root / name).read_bytes()) for name in PARTS])  # noqa: S301 - its own

    def forget(self, step: int) -> None:
        """Nothing: the next save takes its place."""


if __name__ == "__main__":
    main(Flat)

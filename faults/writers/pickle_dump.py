"""`epoch_12.pkl`: one pickle for each step, written in place."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

from faults.writers.frame import Tensors, main
from faults.writers.layouts import Stepped


class Dump(Stepped):
    """Its last opcode shows where it ends."""

    def path(self, step: int) -> Path:
        """See `Stepped.path`."""
        return self.root / f"epoch_{step}.pkl"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        with self.path(step).open("wb") as file:
            pickle.dump({"step": step, **tensors}, file)
        return [[self.path(step)]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        path = self.newest()
        if path is None:
            return None
        held = pickle.loads(path.read_bytes())  # noqa: S301 - its own
        return held.pop("step"), held


if __name__ == "__main__":
    main(Dump)

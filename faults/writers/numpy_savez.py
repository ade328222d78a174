"""NumPy's savez: a zip archive, written in place; numbered files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from faults.writers.frame import Tensors, Writer, main


class Savez(Writer):
    """`step-000012.npz`."""

    def _path(self, step: int) -> Path:
        return self.root / f"step-{step:06}.npz"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        np.savez(self._path(step), step=np.int64(step), **tensors)
        return [[self._path(step)]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        found = sorted(self.root.glob("step-*.npz"))
        if not found:
            return None
        with np.load(found[-1]) as archive:
            held = dict(archive)
        return int(held.pop("step")), held

    def forget(self, step: int) -> None:
        """See `Writer.forget`."""
        self._path(step).unlink(missing_ok=True)


if __name__ == "__main__":
    main(Savez)

"""`model_12.npz`, `optim_12.npz` and `sched_12.npz` side by side: one checkpoint for each number."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from faults.writers.frame import Tensors, Writer, main
from faults.writers.layouts import NUMPY_PARTS, chosen, merged, number_in, read_archive


class Numbered(Writer):
    """Three archives for each step."""

    def _paths(self, step: int) -> list[Path]:
        return [self.root / f"{part}_{step}.npz" for part, _ in NUMPY_PARTS]

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        for path, (_, names) in zip(self._paths(step), NUMPY_PARTS, strict=True):
            np.savez(path, step=np.int64(step), **chosen(tensors, names))
        return [self._paths(step)]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        steps = [number_in(path.name) for path in self.root.glob("*.npz")]
        if not steps:
            return None
        return merged([read_archive(path) for path in self._paths(max(steps))])

    def forget(self, step: int) -> None:
        """See `Writer.forget`."""
        for path in self._paths(step):
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Numbered)

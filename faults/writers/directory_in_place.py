"""One directory, `last`, whose archive, array and JSON file are overwritten in place by every save."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from faults.writers.frame import Tensors, Writer, main
from faults.writers.layouts import WEIGHT, merged, read_archive


class InPlace(Writer):
    """`last/weight.npy`, `last/layers.npz`, `last/state.json`."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        folder = self.root / "last"
        folder.mkdir(exist_ok=True)
        layers = {name: tensor for name, tensor in tensors.items() if name != WEIGHT}
        np.save(folder / "weight.npy", tensors[WEIGHT])
        np.savez(folder / "layers.npz", step=np.int64(step), **layers)
        (folder / "state.json").write_text(json.dumps({"step": step}))
        return [[folder]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        folder = self.root / "last"
        if not folder.exists():
            return None
        step = json.loads((folder / "state.json").read_text())["step"]
        return merged([(step, {WEIGHT: np.load(folder / "weight.npy")}), read_archive(folder / "layers.npz")])

    def forget(self, step: int) -> None:
        """Nothing: the next save takes its place."""


if __name__ == "__main__":
    main(InPlace)

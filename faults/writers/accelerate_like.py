"""Imitates Accelerate's `save_state`: model, optimizer, scheduler and random states in one directory."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

from safetensors.numpy import load_file, save_file

from faults.writers.frame import Tensors, main
from faults.writers.layouts import WEIGHT, Stepped, archived, chosen, merged, read_archive

ARCHIVES = {"optimizer.bin": ("layer0", "layer1"), "scheduler.bin": ("layer2",)}
"""Archives of NumPy stand for those of torch: both are zip files."""


class SaveState(Stepped):
    """`checkpoint_12/model.safetensors`, …, `random_states_0.pkl`."""

    def path(self, step: int) -> Path:
        """See `Stepped.path`."""
        return self.root / f"checkpoint_{step}"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        folder = self.path(step)
        folder.mkdir(exist_ok=True)
        save_file(chosen(tensors, (WEIGHT,)), folder / "model.safetensors")
        for name, held in ARCHIVES.items():
            (folder / name).write_bytes(archived(step, chosen(tensors, held)))
        with (folder / "random_states_0.pkl").open("wb") as file:
            pickle.dump({"step": step}, file)
        return [[folder]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        folder = self.newest()
        if folder is None:
            return None
        states = pickle.loads((folder / "random_states_0.pkl").read_bytes())  # noqa: S301 - its own
        model = states["step"], load_file(folder / "model.safetensors")
        return merged([model, *(read_archive(folder / name) for name in ARCHIVES)])


if __name__ == "__main__":
    main(SaveState)

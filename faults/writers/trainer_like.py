"""Imitates Hugging Face's Trainer: weights first, `trainer_state.json` last, in one directory a step."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from safetensors.numpy import load_file, save_file

from faults.writers.frame import Tensors, main
from faults.writers.layouts import WEIGHT, Stepped, archived, chosen, merged, read_archive

ARCHIVES = {"optimizer.pt": ("layer0",), "scheduler.pt": ("layer1",), "rng_state.pth": ("layer2",)}
"""Archives of NumPy stand for those of torch: both are zip files."""


class Directory(Stepped):
    """`checkpoint-12/…` in the order of `transformers.Trainer._save_checkpoint`."""

    def path(self, step: int) -> Path:
        """See `Stepped.path`."""
        return self.root / f"checkpoint-{step}"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        folder = self.path(step)
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"layers": 3}))
        save_file(chosen(tensors, (WEIGHT,)), folder / "model.safetensors")
        (folder / "training_args.bin").write_bytes(archived(0, {}))
        for name, held in ARCHIVES.items():
            (folder / name).write_bytes(archived(step, chosen(tensors, held)))
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
        return [[folder]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        folder = self.newest()
        if folder is None:
            return None
        step = json.loads((folder / "trainer_state.json").read_text())["global_step"]
        model = step, load_file(folder / "model.safetensors")
        return merged([model, *(read_archive(folder / name) for name in ARCHIVES)])


if __name__ == "__main__":
    main(Directory)

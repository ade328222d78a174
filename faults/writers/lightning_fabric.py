"""Lightning's checkpoint files: written to a temporary name and moved in; a numbered one, and `last.ckpt`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from faults.writers.frame import Tensors, Writer, main


class Fabric(Writer):
    """`epoch=0-step=12.ckpt` and `last.ckpt`, as ModelCheckpoint(save_last=True) writes them."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._io = TorchCheckpointIO()

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        state = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
        checkpoint = {"global_step": step, "state_dict": state}
        paths = [self.root / f"epoch=0-step={step}.ckpt", self.root / "last.ckpt"]
        for path in paths:
            self._io.save_checkpoint(checkpoint, path)
        return [[path] for path in paths]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        found = [self._io.load_checkpoint(path, weights_only=True) for path in self.root.glob("*.ckpt")]
        if not found:
            return None
        newest = max(found, key=lambda held: held["global_step"])
        return newest["global_step"], {name: held.numpy() for name, held in newest["state_dict"].items()}

    def forget(self, step: int) -> None:
        """See `Writer.forget`."""
        (self.root / f"epoch=0-step={step}.ckpt").unlink(missing_ok=True)


if __name__ == "__main__":
    main(Fabric)

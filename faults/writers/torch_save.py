"""torch.save: numbered files, and `last.pt` overwritten in place, as many training scripts do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from faults.writers.frame import Tensors, Writer, main


class Save(Writer):
    """`step-000012.pt` every third step, `last.pt` at each."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        state = {"step": step, "model": {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}}
        paths = [self.root / "last.pt"]
        if step % 3 == 0:
            paths.append(self.root / f"step-{step:06}.pt")
        for path in paths:
            torch.save(state, path)
        return [[path] for path in paths]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        found = [torch.load(path, weights_only=True) for path in self.root.glob("*.pt")]
        if not found:
            return None
        newest = max(found, key=lambda state: state["step"])
        return newest["step"], {name: tensor.numpy() for name, tensor in newest["model"].items()}

    def forget(self, step: int) -> None:
        """See `Writer.forget`."""
        (self.root / f"step-{step:06}.pt").unlink(missing_ok=True)


if __name__ == "__main__":
    main(Save)

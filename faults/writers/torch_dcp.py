"""torch's distributed checkpoint, in one process: a directory a step, `.metadata` moved in last."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp

from faults.writers.frame import SMALL, Tensors, Writer, main, parse


class Distributed(Writer):
    """`step-12/__0_0.distcp` and `.metadata`."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        folder = self.root / f"step-{step}"
        state = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
        dcp.save({"step": torch.tensor(step), **state}, checkpoint_id=folder, no_dist=True)
        return [[folder]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        found = sorted(self.root.glob("step-*"), key=lambda path: int(path.name[5:]))
        if not found:
            return None
        state = {"step": torch.tensor(0), "weight": torch.zeros(parse().count)}
        state |= {f"layer{index}": torch.zeros(SMALL) for index in range(3)}
        dcp.load(state, checkpoint_id=found[-1], no_dist=True)
        return int(state.pop("step")), {name: tensor.numpy() for name, tensor in state.items()}

    def forget(self, step: int) -> None:
        """See `Writer.forget`."""
        shutil.rmtree(self.root / f"step-{step}", ignore_errors=True)


if __name__ == "__main__":
    main(Distributed)

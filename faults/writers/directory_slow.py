"""A directory for each step with four raw files, and pauses of up to three seconds between them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from pathlib import Path

from faults.writers.frame import Tensors, main, parse
from faults.writers.layouts import Stepped, merged, raw, read_raw, sizes

PAUSES = (0.0, 0.2, 1.4, 3.0)
"""Seconds: none, below the agent's short pause, and above it, as while an optimizer is gathered."""


class Slow(Stepped):
    """`step-12/layer0.bin`, …, `step-12/weight.bin`."""

    def path(self, step: int) -> Path:
        """See `Stepped.path`."""
        return self.root / f"step-{step}"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        moods = random.Random(step)  # noqa: S311 - a plan, no secret
        self.path(step).mkdir(exist_ok=True)
        for name, tensor in tensors.items():
            (self.path(step) / f"{name}.bin").write_bytes(raw(step, tensor))
            time.sleep(moods.choice(PAUSES))
        return [[self.path(step)]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        folder = self.newest()
        if folder is None:
            return None
        parts = []
        for name, count in sizes(parse().count).items():
            step, (tensor,) = read_raw((folder / f"{name}.bin").read_bytes(), count)
            parts.append((step, {name: tensor}))
        return merged(parts)


if __name__ == "__main__":
    main(Slow)

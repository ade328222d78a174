"""Imitates torch's distributed checkpoint: raw shards, then `.metadata`, renamed in last."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

from faults.writers.frame import Tensors, main, parse
from faults.writers.layouts import WEIGHT, Stepped, merged, raw, read_raw, sizes

SHARDS = {"__0_0.distcp": (WEIGHT,), "__0_1.distcp": ("layer0", "layer1", "layer2")}


class Distributed(Stepped):
    """`step-12/__0_0.distcp`, `__0_1.distcp` and `.metadata`."""

    def path(self, step: int) -> Path:
        """See `Stepped.path`."""
        return self.root / f"step-{step}"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        folder = self.path(step)
        folder.mkdir(exist_ok=True)
        for name, held in SHARDS.items():
            (folder / name).write_bytes(raw(step, *(tensors[one] for one in held)))
        partial = folder / ".metadata.tmp"
        partial.write_bytes(pickle.dumps({"step": step}))
        partial.rename(folder / ".metadata")
        return [[folder]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        folder, counts = self.newest(), sizes(parse().count)
        if folder is None:
            return None
        metadata = pickle.loads((folder / ".metadata").read_bytes())  # noqa: S301 - its own
        parts: list[tuple[int, Tensors]] = [(metadata["step"], {})]
        for name, held in SHARDS.items():
            step, found = read_raw((folder / name).read_bytes(), *(counts[one] for one in held))
            parts.append((step, dict(zip(held, found, strict=True))))
        return merged(parts)


if __name__ == "__main__":
    main(Distributed)

"""`model.bin` and `optimizer.bin` side by side: each is written under a temporary name and renamed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from faults.writers.frame import Tensors, Writer, main, parse
from faults.writers.layouts import WEIGHT, merged, raw, read_raw, sizes

PARTS = {"model.bin": (WEIGHT,), "optimizer.bin": ("layer0", "layer1", "layer2")}


class Renamed(Writer):
    """Two files that are one checkpoint, in a format that does not show its end."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        for name, held in PARTS.items():
            partial = self.root / f"{name}.tmp"
            partial.write_bytes(raw(step, *(tensors[one] for one in held)))
            partial.replace(self.root / name)
        return [[self.root / name for name in PARTS]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        if not any(self.root.glob("*.bin")):
            return None
        return merged([self._part(name, held) for name, held in PARTS.items()])

    def _part(self, name: str, held: tuple[str, ...]) -> tuple[int, Tensors]:
        counts = sizes(parse().count)
        step, found = read_raw((self.root / name).read_bytes(), *(counts[one] for one in held))
        return step, dict(zip(held, found, strict=True))

    def forget(self, step: int) -> None:
        """Nothing: the next save takes its place."""


if __name__ == "__main__":
    main(Renamed)

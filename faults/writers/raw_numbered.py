"""`ckpt.12`: a numbered raw file for each step, whose format does not show its end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from faults.writers.frame import Tensors, main, parse
from faults.writers.layouts import Stepped, raw, read_raw, sizes


class Numbered(Stepped):
    """The number is the suffix."""

    def path(self, step: int) -> Path:
        """See `Stepped.path`."""
        return self.root / f"ckpt.{step}"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        self.path(step).write_bytes(raw(step, *tensors.values()))
        return [[self.path(step)]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        path, counts = self.newest(), sizes(parse().count)
        if path is None:
            return None
        step, found = read_raw(path.read_bytes(), *counts.values())
        return step, dict(zip(counts, found, strict=True))


if __name__ == "__main__":
    main(Numbered)

"""`last.bin` of constant size, opened without truncation and overwritten from its start to its end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from faults.writers.frame import Tensors, Writer, main, parse
from faults.writers.layouts import raw, read_raw, sizes

CHUNK = 1 << 18
"""Bytes of one write."""


class InPlace(Writer):
    """A file whose size never shows a torn save."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        path, data = self.root / "last.bin", raw(step, *tensors.values())
        with path.open("r+b" if path.exists() else "wb", buffering=0) as file:
            for start in range(0, len(data), CHUNK):
                file.write(data[start : start + CHUNK])
        return [[path]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        path, counts = self.root / "last.bin", sizes(parse().count)
        if not path.exists():
            return None
        step, found = read_raw(path.read_bytes(), *counts.values())
        return step, dict(zip(counts, found, strict=True))

    def forget(self, step: int) -> None:
        """Nothing: the next save takes its place."""


if __name__ == "__main__":
    main(InPlace)

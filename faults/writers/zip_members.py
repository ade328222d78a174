"""`step-12.zip`: an archive to which one member after the other is added, with short pauses."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

from faults.writers.frame import Tensors, main, parse
from faults.writers.layouts import Stepped, merged, raw, read_raw, sizes

PAUSE = 0.15
"""Seconds between two members."""


class Members(Stepped):
    """`with ZipFile(...)` writes the archive's end also where an exception leaves the block."""

    def path(self, step: int) -> Path:
        """See `Stepped.path`."""
        return self.root / f"step-{step}.zip"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        with ZipFile(self.path(step), "w") as archive:
            for name, tensor in tensors.items():
                archive.writestr(name, raw(step, tensor))
                time.sleep(PAUSE)
        return [[self.path(step)]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        path = self.newest()
        if path is None:
            return None
        with ZipFile(path) as archive:
            read = {name: read_raw(archive.read(name), count) for name, count in sizes(parse().count).items()}
        return merged([(step, {name: tensor}) for name, (step, (tensor,)) in read.items()])


if __name__ == "__main__":
    main(Members)

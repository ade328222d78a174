"""A directory for each step, written as `step-12.tmp` and renamed in when it is whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from faults.writers.directory_slow import Slow
from faults.writers.frame import Tensors, main
from faults.writers.layouts import raw


class Renamed(Slow):
    """The files of `Slow`, in a directory that appears as a whole."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        partial = self.root / f"step-{step}.tmp"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for name, tensor in tensors.items():
            (partial / f"{name}.bin").write_bytes(raw(step, tensor))
        partial.rename(self.path(step))
        return [[self.path(step)]]


if __name__ == "__main__":
    main(Renamed)

"""joblib's dump, scikit-learn's way to save: one file, written under a temporary name and renamed.

Its format does not show whether it is complete, so this is what the docs advise.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import joblib

from faults.writers.frame import Tensors, Writer, main


class Dump(Writer):
    """`last.joblib`, and nothing else."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        partial = self.root / "last.joblib.tmp"
        joblib.dump({"step": step, **tensors}, partial)
        partial.rename(self.root / "last.joblib")
        return [[self.root / "last.joblib"]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        if not (self.root / "last.joblib").exists():
            return None
        held = joblib.load(self.root / "last.joblib")
        return held.pop("step"), held

    def forget(self, step: int) -> None:
        """Nothing: the next save takes its place."""


if __name__ == "__main__":
    main(Dump)

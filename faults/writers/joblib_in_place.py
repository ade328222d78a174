"""joblib's dump, overwriting `last.joblib` in place: a kill tears it, and its format does not show it.

What the docs advise against. It takes part only where it alone is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import joblib

from faults.writers.frame import Tensors, main
from faults.writers.joblib_dump import Dump


class InPlace(Dump):
    """`last.joblib`, opened again by each save."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        joblib.dump({"step": step, **tensors}, self.root / "last.joblib")
        return [[self.root / "last.joblib"]]


if __name__ == "__main__":
    main(InPlace)

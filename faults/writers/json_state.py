"""`state-12.json`: all tensors as hexadecimal text in one JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from faults.writers.frame import Tensors, main
from faults.writers.layouts import Stepped


class State(Stepped):
    """A format that shows its end."""

    def path(self, step: int) -> Path:
        """See `Stepped.path`."""
        return self.root / f"state-{step}.json"

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        text = {name: tensor.tobytes().hex() for name, tensor in tensors.items()}
        with self.path(step).open("w") as file:
            file.write(json.dumps({"step": step, **text}))
        return [[self.path(step)]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        path = self.newest()
        if path is None:
            return None
        held = json.loads(path.read_text())
        step = int(held.pop("step"))
        return step, {name: np.frombuffer(bytes.fromhex(text), np.float32) for name, text in held.items()}


if __name__ == "__main__":
    main(State)

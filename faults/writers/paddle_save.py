"""paddle.save: a pickle of parameters and one of the optimizer's state, which share a stem."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import paddle

from faults.writers.frame import Tensors, Writer, main

SUFFIXES = (".pdparams", ".pdopt")


class Save(Writer):
    """`step_12.pdparams` and `step_12.pdopt`."""

    def _paths(self, step: int) -> list[Path]:
        return [self.root / f"step_{step}{suffix}" for suffix in SUFFIXES]

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        state = {name: paddle.to_tensor(tensor) for name, tensor in tensors.items()}
        parameters, optimizer = self._paths(step)
        paddle.save(state, str(parameters))
        paddle.save({"step": step}, str(optimizer))
        return [[parameters, optimizer]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        found = sorted(int(path.stem[5:]) for path in self.root.glob("step_*.pdparams"))
        if not found:
            return None
        parameters, optimizer = self._paths(found[-1])
        state = paddle.load(str(parameters))
        return paddle.load(str(optimizer))["step"], {name: held.numpy() for name, held in state.items()}

    def forget(self, step: int) -> None:
        """See `Writer.forget`."""
        for path in self._paths(step):
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Save)

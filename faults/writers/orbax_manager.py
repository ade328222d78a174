"""Orbax's CheckpointManager: a directory a step, renamed in when it is whole; it rotates by itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import orbax.checkpoint as ocp

from faults.writers.frame import Tensors, Writer, main, parse


class Manager(Writer):
    """`<step>/…`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        keep = parse().rotate or None
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, enable_async_checkpointing=False)
        self._manager = ocp.CheckpointManager(root, options=options)

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        self._manager.save(step, args=ocp.args.StandardSave(tensors), force=True)
        return [[self.root / str(step)]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        step = self._manager.latest_step()
        if step is None:
            return None
        return step, self._manager.restore(step, args=ocp.args.StandardRestore())

    def forget(self, step: int) -> None:
        """Nothing: the manager does."""


if __name__ == "__main__":
    main(Manager)

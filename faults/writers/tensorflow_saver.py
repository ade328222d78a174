"""TensorFlow's CheckpointManager: a bundle of index and data, and the pointer `checkpoint`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

from faults.writers.frame import SMALL, Tensors, Writer, main, parse


class Saver(Writer):
    """`ckpt-12.index`, `ckpt-12.data-00000-of-00001`, `checkpoint`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        given = parse()
        sizes = {"weight": given.count, **{f"layer{index}": SMALL for index in range(3)}}
        self._held = {name: tf.Variable(tf.zeros([size])) for name, size in sizes.items()}
        self._step = tf.Variable(0, dtype=tf.int64)
        self._checkpoint = tf.train.Checkpoint(step=self._step, **self._held)
        keep = given.rotate or None
        self._manager = tf.train.CheckpointManager(self._checkpoint, str(root), max_to_keep=keep)

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        self._step.assign(step)
        for name, tensor in tensors.items():
            self._held[name].assign(tensor)
        prefix = Path(self._manager.save(checkpoint_number=step))
        return [[*self.root.glob(f"{prefix.name}.*"), self.root / "checkpoint"]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        latest = self._manager.latest_checkpoint
        if latest is None:
            return None
        self._checkpoint.restore(latest).assert_consumed()
        return int(self._step.numpy()), {name: held.numpy() for name, held in self._held.items()}

    def forget(self, step: int) -> None:
        """Nothing: the manager does."""


if __name__ == "__main__":
    main(Saver)

"""A softmax classifier over small pictures that times the loading of its batches."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from podferry.pipelines.remote_reads import reader_of
from podferry.trainer import ferry

LEARNING_RATE = 0.5
SIDE = 8
"""Pixels of a side after scaling down: enough for the pictures of this example."""
REMOTE_BATCHES = 8
"""How many batches are read straight from the store: a sample, since an epoch of them would take minutes."""
SHUFFLE_SEED = 7

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Batch = tuple[Array, Labels]


@dataclass(frozen=True, slots=True)
class Measured:
    """What the training has measured.

    Attributes:
        staged_batch_ms: Median time to load a batch from the stage, milliseconds.
        remote_batch_ms: The same straight from the store, over one connection.
        blocked_ms: Mean time that saving a checkpoint blocked the training; 0 if none was saved.
        accuracy: Share of pictures classified correctly, 0 to 1.
    """

    staged_batch_ms: float
    remote_batch_ms: float
    blocked_ms: float
    accuracy: float


class Batches:
    """Loads the pictures in batches, and keeps the seconds that each batch took.

    Args:
        names: `<class>/<picture>.png`, relative to the dataset.
        size: Pictures per batch.
        read: Returns the bytes of a name.
    """

    def __init__(self, names: Sequence[str], size: int, read: Callable[[str], bytes]) -> None:
        shuffled = np.random.default_rng(SHUFFLE_SEED).permutation(len(names))
        self._names = [names[at] for at in shuffled]
        self._classes = sorted({name.split("/")[0] for name in names})
        self._size, self._read = size, read
        self.seconds: list[float] = []

    def __iter__(self) -> Iterator[Batch]:
        for start in range(0, len(self._names), self._size):
            began = time.monotonic()
            loaded = self._load(self._names[start : start + self._size])
            self.seconds.append(time.monotonic() - began)
            yield loaded

    def _load(self, names: Sequence[str]) -> Batch:
        """Pixels from 0 to 1 of shape (batch, SIDE * SIDE * 3), and classes of shape (batch,)."""
        pixels = np.stack([_decode(self._read(name)) for name in names])
        return pixels, np.array([self._classes.index(name.split("/")[0]) for name in names])


def train(dataset: str, checkpoints: str, epochs: int, batch: int) -> Measured:
    """Train, save a checkpoint after each epoch, and load some batches in both ways.

    Args:
        dataset: Reference of pictures below one folder per class, in S3 or OSS.
        checkpoints: URI of the destination.
        epochs: Epochs in total, including those of earlier attempts.
        batch: Pictures per batch.

    Raises:
        FerryError: See `podferry.trainer.ferry.ferry`.
    """
    with ferry(dataset, checkpoints) as f:
        assert f.dataset is not None and f.checkpoints is not None  # noqa: PT018, S101 - both were requested
        stage = f.dataset
        names = sorted(path.relative_to(stage).as_posix() for path in stage.rglob("*.png"))
        staged = Batches(names, batch, lambda name: (stage / name).read_bytes())
        weights, done = _restore(f.restored, len({name.split("/")[0] for name in names}))
        blocked = []
        for epoch in range(done + 1, epochs + 1):
            for pixels, labels in staged:
                weights = _step(weights, pixels, labels)
            blocked.append(_save(f.checkpoints / f"epoch-{epoch}.npz", weights, epoch))
        right = sum(_right(weights, pixels, labels) for pixels, labels in staged)
    remote = Batches(names, batch, reader_of(dataset))
    for _ in islice(remote, REMOTE_BATCHES):
        pass
    return Measured(
        staged_batch_ms=1000 * statistics.median(staged.seconds),
        remote_batch_ms=1000 * statistics.median(remote.seconds),
        blocked_ms=1000 * statistics.fmean(blocked or [0.0]),
        accuracy=right / len(names),
    )


def _decode(data: bytes) -> Array:
    with Image.open(io.BytesIO(data)) as image:
        small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
        return np.asarray(small, np.float32).ravel() / np.float32(255)


def _restore(checkpoint: Path | None, classes: int) -> tuple[Array, int]:
    """Weights of shape (SIDE * SIDE * 3, classes), and the completed epochs."""
    if checkpoint is None:
        return np.zeros((SIDE * SIDE * 3, classes), np.float32), 0
    with np.load(checkpoint, allow_pickle=False) as arrays:
        return arrays["weights"], int(arrays["epoch"])


def _save(path: Path, weights: Array, epoch: int) -> float:
    """Write a checkpoint; the seconds for which the training was blocked."""
    began = time.monotonic()
    np.savez(path, allow_pickle=False, weights=weights, epoch=np.int64(epoch))
    return time.monotonic() - began


def _step(weights: Array, pixels: Array, labels: Labels) -> Array:
    """One step of gradient descent on the mean cross entropy."""
    scores = pixels @ weights
    scaled = np.exp(scores - scores.max(axis=1, keepdims=True))
    error = scaled / scaled.sum(axis=1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1
    gradient: Array = pixels.T @ error
    return weights - np.float32(LEARNING_RATE / len(labels)) * gradient


def _right(weights: Array, pixels: Array, labels: Labels) -> int:
    """How many pictures are classified correctly."""
    return int(((pixels @ weights).argmax(axis=1) == labels).sum())

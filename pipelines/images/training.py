"""Trains on the digits, and measures how many images per second it sees and how long it waits for them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from podferry.pipelines.digits_model import Model, load_model, new_model, read_image, save_model, train_epoch
from podferry.pipelines.digits_training import STAGE_VARIABLE
from podferry.pipelines.remote_reads import reader_of
from podferry.trainer import ferry

REMOTE_SHARE = 4
"""Every fourth image is read straight from the store: enough for a rate."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of an epoch.

    Attributes:
        images_per_second: Waiting included.
        waiting_share: Share of the time spent waiting for data, 0 to 1.
    """

    images_per_second: float
    waiting_share: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What the training has measured.

    Attributes:
        first: The first epoch, from the request for the dataset on.
        later: The later epochs.
        remote: An epoch that reads its images straight from the store.
    """

    first: Pace
    later: Pace
    remote: Pace


class Timed:
    """Reads files, and sums the seconds that this takes."""

    def __init__(self, read: Callable[[Path], bytes]) -> None:
        self._read = read
        self.seconds = 0.0

    def __call__(self, path: Path) -> bytes:
        """Read a file."""
        began = time.monotonic()
        data = self._read(path)
        self.seconds += time.monotonic() - began
        return data


def train(dataset: str, checkpoints: str, epochs: int, seed: int) -> Measured:
    """Train up to `epochs`, at least 2, and measure.

    Args:
        dataset: Reference of images below `train/<digit>/`, in an S3 bucket.
        checkpoints: URI of the destination.
        epochs: Epochs in total.
        seed: Seed of the initial weights.

    Raises:
        FerryError: See `podferry.trainer.ferry.ferry`.
    """
    requested = time.monotonic()
    with ferry(dataset, checkpoints, dataset_path=os.environ.get(STAGE_VARIABLE)) as f:
        assert f.dataset is not None and f.checkpoints is not None  # noqa: PT018, S101 - both were requested
        waited = time.monotonic() - requested
        stage = f.dataset
        images = sorted((stage / "train").glob("*/*.png"))
        model = load_model(f.restored) if f.restored else new_model(seed)
        paces = []
        for _ in range(epochs):
            model, pace = _epoch(model, images, read_image, waited)
            save_model(f.checkpoints / f"epoch-{model.epoch:02d}.npz", model)
            paces.append(pace)
            waited = 0.0
        read = reader_of(dataset)
        sample = images[::REMOTE_SHARE]
        _, remote = _epoch(model, sample, lambda path: read(path.relative_to(stage).as_posix()), 0.0)
    return Measured(paces[0], _mean(paces[1:]), remote)


def _epoch(
    model: Model, images: Sequence[Path], read: Callable[[Path], bytes], waited: float
) -> tuple[Model, Pace]:
    """Train an epoch before which the training has waited so many seconds for its data."""
    timed = Timed(read)
    began = time.monotonic()
    model, _ = train_epoch(model, images, read=timed)
    seconds = time.monotonic() - began + waited
    return model, Pace(len(images) / seconds, (waited + timed.seconds) / seconds)


def _mean(paces: Sequence[Pace]) -> Pace:
    """The mean pace of epochs of the same images: times are added, and rates are not."""
    seconds = sum(1 / pace.images_per_second for pace in paces)
    waiting = sum(pace.waiting_share / pace.images_per_second for pace in paces)
    return Pace(len(paces) / seconds, waiting / seconds)

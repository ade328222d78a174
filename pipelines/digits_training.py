"""Trains on the digits like any training code: reads files, writes files, resumes from a file."""

from __future__ import annotations

import os
import time
from pathlib import Path

from podferry.components import Ferry, ferry
from podferry.pipelines.digits_events import Began, Left, Opened, Saved, Trained, publish
from podferry.pipelines.digits_model import Model, accuracy, load_model, new_model, save_model, train_epoch

STAGE_VARIABLE = "DIGITS_STAGE"
"""A directory that keeps the images between runs on one machine. In a pod the annotations decide."""


def train(dataset: str, checkpoints: str, epochs: int, seed: int) -> tuple[float, str]:
    """Train up to `epochs`, resuming from the newest durable checkpoint; return accuracy and lineage.

    Args:
        dataset: Reference of images below `train/<digit>/` and `test/<digit>/`.
        checkpoints: URI of the destination.
        epochs: Epochs in total, including those of earlier attempts.
        seed: Seed of the initial weights.

    Raises:
        FerryError: See `podferry.trainer.ferry.ferry`.
    """
    with ferry(dataset, checkpoints, dataset_path=os.environ.get(STAGE_VARIABLE)) as f:
        assert f.dataset is not None and f.checkpoints is not None  # noqa: PT018, S101 - both were requested
        model = load_model(f.restored) if f.restored else new_model(seed)
        opened = _opened_event(f, model.epoch)
        publish(opened)
        model = _train(model, _images(f.dataset / "train"), f.checkpoints, epochs)
        test_accuracy = accuracy(model, _images(f.dataset / "test"))
        left_at = time.monotonic()
    publish(Left(at=time.time(), blocked=time.monotonic() - left_at, accuracy=test_accuracy))
    return test_accuracy, opened.lineage


def _train(model: Model, images: list[Path], checkpoints: Path, epochs: int) -> Model:
    while model.epoch < epochs:
        publish(Began(at=time.time(), epoch=model.epoch + 1))
        model, loss = train_epoch(model, images)
        publish(Trained(at=time.time(), epoch=model.epoch, loss=loss))
        _save(model, checkpoints / f"epoch-{model.epoch:02d}.npz")
    return model


def _save(model: Model, path: Path) -> None:
    started = time.monotonic()
    save_model(path, model)
    publish(Saved(at=time.time(), name=path.stem, blocked=time.monotonic() - started))


def _images(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.png"))


def _opened_event(f: Ferry, epoch: int) -> Opened:
    status = f.status()
    assert status.checkpoints is not None  # noqa: S101 - a destination was requested
    [dataset] = status.datasets
    restored = status.checkpoints.restored
    return Opened(
        at=time.time(),
        pid=os.getpid(),
        lineage=status.checkpoints.lineage,
        stage=dataset.path,
        files=dataset.files,
        bytes=dataset.bytes,
        kept=dataset.files_kept,
        prefetch=dataset.seconds,
        restored=restored.name if restored else None,
        restore=restored.seconds if restored else 0.0,
        epoch=epoch,
    )

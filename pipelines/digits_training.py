"""Trains on the digits as any training code would: it reads files, writes files, and resumes from a file."""

from __future__ import annotations

import os
import time
from pathlib import Path

from podferry.components import Ferry, ferry
from podferry.pipelines.digits_events import Began, Left, Opened, Saved, Trained, publish
from podferry.pipelines.digits_model import Model, accuracy, load_model, new_model, save_model, train_epoch


def train(dataset: str, checkpoints: str, epochs: int, seed: int) -> tuple[float, str]:
    """Train until `epochs` are done, going on from the newest durable checkpoint; accuracy and lineage.

    Args:
        dataset: Reference of images below `train/<digit>/` and `test/<digit>/`.
        checkpoints: URI of the destination.
        epochs: How many in all, those of earlier attempts included.
        seed: Other seeds, other first weights.

    Raises:
        FerryError: See `podferry.trainer.ferry.ferry`.
    """
    with ferry(dataset, checkpoints) as found:
        assert found.dataset is not None and found.checkpoints is not None  # noqa: PT018, S101 - asked for
        model = load_model(found.restored) if found.restored else new_model(seed)
        opened = _opened(found, model.epoch)
        publish(opened)
        model = _train(model, _images(found.dataset / "train"), found.checkpoints, epochs)
        right = accuracy(model, _images(found.dataset / "test"))
        leaving = time.monotonic()
    publish(Left(at=time.time(), blocked=time.monotonic() - leaving, accuracy=right))
    return right, opened.lineage


def _train(model: Model, images: list[Path], checkpoints: Path, epochs: int) -> Model:
    while model.epoch < epochs:
        publish(Began(at=time.time(), epoch=model.epoch + 1))
        model, loss = train_epoch(model, images)
        publish(Trained(at=time.time(), epoch=model.epoch, loss=loss))
        _save(model, checkpoints / f"epoch-{model.epoch:02d}.npz")
    return model


def _save(model: Model, path: Path) -> None:
    began = time.monotonic()
    save_model(path, model)
    publish(Saved(at=time.time(), name=path.stem, blocked=time.monotonic() - began))


def _images(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.png"))


def _opened(found: Ferry, epoch: int) -> Opened:
    status = found.status()
    assert status.checkpoints is not None  # noqa: S101 - asked for
    [dataset] = status.datasets
    restored = status.checkpoints.restored
    return Opened(
        at=time.time(),
        pid=os.getpid(),
        lineage=status.checkpoints.lineage,
        stage=dataset.path,
        files=dataset.files,
        bytes=dataset.bytes,
        prefetch=dataset.seconds,
        restored=restored.name if restored else None,
        restore=restored.seconds if restored else 0.0,
        epoch=epoch,
    )

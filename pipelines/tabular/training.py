"""Trains the wide-and-deep model: reads shards of arrays, writes checkpoints, resumes from one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podferry.pipelines.tabular.model import (
    Model,
    area_under_curve,
    load,
    new_model,
    predict,
    save,
    train_batch,
)
from podferry.pipelines.tabular.rows import Rows
from podferry.pipelines.tabular.rows import load as load_rows
from podferry.trainer import ferry

BATCH = 256
SEED = 7


@dataclass(frozen=True, slots=True)
class Trained:
    """What the training has measured.

    Attributes:
        rows_per_second: Rows trained per second, loading included; 0 if nothing was left to train.
        waiting_share: Share of the training's time spent loading shards, 0 to 1.
        auc: Area under the curve on the test rows, 0 to 1.
        epochs_before: Epochs that earlier attempts had completed.
    """

    rows_per_second: float
    waiting_share: float
    auc: float
    epochs_before: int


class Clock:
    """Sums the seconds of loading and of training, and the rows."""

    def __init__(self) -> None:
        self.loading = self.training = 0.0
        self.rows = 0

    @property
    def seconds(self) -> float:
        """Both."""
        return self.loading + self.training


def train(dataset: str, checkpoints: str, epochs: int) -> Trained:
    """Train up to `epochs`, resuming from the newest sure checkpoint.

    Args:
        dataset: Reference of shards below `train/` and `test/`, as `rows.convert` writes them.
        checkpoints: URI of the destination.
        epochs: Epochs in total, including those of earlier attempts.

    Raises:
        FerryError: See `podferry.trainer.ferry.ferry`.
    """
    clock = Clock()
    with ferry(dataset, checkpoints) as f:
        assert f.dataset is not None and f.checkpoints is not None  # noqa: PT018, S101 - both were requested
        model = load(f.restored) if f.restored else new_model(SEED)
        before = model.epoch
        while model.epoch < epochs:
            for shard in sorted((f.dataset / "train").glob("*.npz")):
                _train_shard(model, shard, clock)
            model.epoch += 1
            save(f.checkpoints / f"epoch-{model.epoch:02d}.npz", model)
        test = [load_rows(shard) for shard in sorted((f.dataset / "test").glob("*.npz"))]
        found = np.concatenate([predict(model, rows) for rows in test])
    return Trained(
        rows_per_second=clock.rows / clock.seconds if clock.rows else 0.0,
        waiting_share=clock.loading / clock.seconds if clock.rows else 0.0,
        auc=area_under_curve(found, np.concatenate([rows.labels for rows in test])),
        epochs_before=before,
    )


def _train_shard(model: Model, shard: Path, clock: Clock) -> None:
    began = time.monotonic()
    rows = load_rows(shard)
    loaded = time.monotonic()
    for batch in _batches(rows):
        train_batch(model, batch)
    clock.loading += loaded - began
    clock.training += time.monotonic() - loaded
    clock.rows += len(rows)


def _batches(rows: Rows) -> list[Rows]:
    return [rows.at(slice(start, start + BATCH)) for start in range(0, len(rows), BATCH)]

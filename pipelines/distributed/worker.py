"""One worker: trains on its share of the digits, and writes its part of every checkpoint.

    python -m podferry.pipelines.distributed.worker DATASET CHECKPOINTS LINEAGE EPOCHS [FAIL_AT]

It finds the others by `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`, which torchrun sets, or the
variables with which Kubeflow's Trainer starts torchrun.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from podferry.components import Ferry, ferry
from podferry.pipelines.digits_model import Array, Model, accuracy, new_model, train_epoch
from podferry.pipelines.distributed.all_reduce import Group, join

SEED = 7


def work(dataset: str, checkpoints: str, lineage: str, epochs: int, fail_at: int = 0) -> None:
    """Train up to `epochs`, resuming from the newest checkpoint that is complete over all workers.

    Args:
        dataset: Reference of images below `train/<digit>/` and `test/<digit>/`.
        checkpoints: URI of the destination.
        lineage: The name that all attempts and all workers share.
        epochs: Epochs in total, including those of earlier attempts.
        fail_at: The epoch in which the last worker of a first attempt fails on purpose; 0 for none.

    Raises:
        RuntimeError: The failure on purpose.
        FerryError: See `podferry.trainer.ferry.ferry`.
    """
    group = join()
    with ferry(dataset, checkpoints, lineage=lineage, world=group.world) as f:
        assert f.dataset and f.checkpoints  # noqa: PT018, S101 - both were requested
        model = load(f.restored) if f.restored else new_model(SEED)
        before = model.epoch
        images = sorted((f.dataset / "train").glob("*/*.png"))
        share = images[group.rank :: group.world][: len(images) // group.world]
        while model.epoch < epochs:
            if model.epoch + 1 == fail_at and not before:
                f.wait_durable()  # of all parts: the next attempt resumes after the last epoch
                if group.rank == group.world - 1:
                    raise RuntimeError(f"this worker fails on purpose in epoch {fail_at}")
            model, _ = train_epoch(model, share, group.average)
            save(f.checkpoints / f"epoch-{model.epoch:02d}", model, group)
            _wait_for_the_others(f, group)
        found = accuracy(model, sorted((f.dataset / "test").glob("*/*.png")))
    sys.stdout.write(json.dumps({"rank": group.rank, "epochs_before": before, "accuracy": found}) + "\n")


def _wait_for_the_others(f: Ferry, group: Group) -> None:
    """Keep the workers within one epoch of each other, as a real network's gradients do."""
    group.average([np.zeros(1, np.float32)])


def save(folder: Path, model: Model, group: Group) -> None:
    """Write this worker's part: every `world`-th array. A rename shows that it is complete."""
    arrays = dict(enumerate((*model.weights, *model.momenta)))
    part = {f"array_{at}": array for at, array in arrays.items() if at % group.world == group.rank}
    folder.mkdir(exist_ok=True)
    temporary = folder / f".part-{group.rank}.tmp.npz"
    np.savez(temporary, allow_pickle=False, epoch=np.int64(model.epoch), seed=np.int64(model.seed), **part)
    temporary.rename(folder / f"part-{group.rank}.npz")


def load(folder: Path) -> Model:
    """Read all parts, from however many workers."""
    arrays: dict[int, Array] = {}
    epoch = seed = 0
    for path in folder.glob("part-*.npz"):
        with np.load(path, allow_pickle=False) as part:
            epoch, seed = int(part["epoch"]), int(part["seed"])
            arrays |= {int(name[6:]): part[name] for name in part.files if name.startswith("array_")}
    ordered = [arrays[at] for at in range(len(arrays))]
    half = len(ordered) // 2
    return Model(epoch, seed, tuple(ordered[:half]), tuple(ordered[half:]))


if __name__ == "__main__":
    given = sys.argv[1:]
    work(given[0], given[1], given[2], *map(int, given[3:]))

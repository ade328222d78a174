"""Several workers train together; each writes its part of a checkpoint, and all or none is committed.

`distributed` runs them in one step, also on a laptop; `distributed_pods` in a pod each, with a TrainJob.
"""

# KFP copies only a step's source and reads its annotations as values: imports are inside, there is no
# `from __future__ import annotations` here, and outputs are an inline NamedTuple.
# mypy: disable-error-code=valid-type, disallow-untyped-decorators=False
# ruff: noqa: PLC0415
import os
from typing import NamedTuple

from kfp import dsl

from podferry.components import dataset, gpu_train, train_job, verify_checkpoint

IMAGE = os.environ.get("TRAIN_IMAGE", "podferry:0.1.0-python3.12")
"""An image with `podferry[demo]`."""
SECRET = "podferry-store"  # noqa: S105 - the name of a Secret, not what it holds
"""Secret with the store's credentials. A local run reads the environment."""


LINEAGE, WORKERS = "digits-distributed", 2


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(
    dataset: str, checkpoints: str, lineage: str, epochs: int, workers: int, fail_at: int
) -> NamedTuple("Outputs", [("accuracy", float), ("epochs_before", int)]):
    """Train with several workers in this step.

    Args:
        dataset: Reference of the images.
        checkpoints: URI of the destination.
        lineage: The name that all attempts share.
        epochs: Epochs in total, including those of earlier attempts.
        workers: Number of worker processes.
        fail_at: The epoch in which a worker of a first attempt fails on purpose; 0 for none.

    Returns:
        accuracy: Share of test images classified correctly, 0 to 1.
        epochs_before: Epochs that earlier attempts had completed.
    """
    from podferry.pipelines.distributed.launch import train

    found = train(dataset, checkpoints, lineage, epochs, workers, fail_at)
    return (found.accuracy, found.epochs_before)


class Outputs(NamedTuple):
    """Those of the training."""

    accuracy: float
    epochs_before: int


@dsl.pipeline(name="distributed")
def distributed(
    uri: str,
    checkpoints: str,
    lineage: str = LINEAGE,
    epochs: int = 6,
    workers: int = WORKERS,
    fail_at: int = 0,
) -> Outputs:
    """Train with several workers; succeed only if the last checkpoint has every worker's part.

    Args:
        uri: URI of PNG files below `train/<digit>/` and `test/<digit>/`.
        checkpoints: URI of the destination.
        lineage: The name that all attempts share.
        epochs: Epochs in total.
        workers: Number of workers.
        fail_at: The epoch in which a worker of a first attempt fails on purpose; 0 for none.
    """
    reference = dataset(uri, secret=SECRET).outputs["reference"]
    step = train(
        dataset=reference,
        checkpoints=checkpoints,
        lineage=lineage,
        epochs=epochs,
        workers=workers,
        fail_at=fail_at,
    )
    gpu_train(step, lineage=lineage, checkpoint_size="64Mi", gpus=0, secret=SECRET)
    verify_checkpoint(of=step, full=True, secret=SECRET)
    return Outputs(**step.outputs)


@dsl.pipeline(name="distributed-pods")
def distributed_pods(uri: str, checkpoints: str, epochs: int = 6) -> None:
    """Train with two pods of a TrainJob; succeed only if the last checkpoint has the parts of both.

    Args:
        uri: URI of PNG files below `train/<digit>/` and `test/<digit>/`.
        checkpoints: URI of the destination.
        epochs: Epochs in total.
    """
    reference = dataset(uri, secret=SECRET).outputs["reference"]
    worker = ["python", "-m", "podferry.pipelines.distributed.worker"]
    job = train_job(
        "torch-distributed",
        trainer={
            "image": IMAGE,
            "command": [*worker, f"{reference}", f"{checkpoints}", LINEAGE, f"{epochs}"],
            "numNodes": WORKERS,
        },
        dataset=reference,
        checkpoints=checkpoints,
        checkpoint_size="64Mi",
        lineage=LINEAGE,
        world=WORKERS,
        secret=SECRET,
    )
    verify_checkpoint(checkpoints, lineages=job.outputs["lineage"], full=True, secret=SECRET)

"""Dataset, train, verify: the data is read-only files in memory, checkpoints leave through the store's SDK.

The training reports how long it waits for a batch, and how long the same batch takes straight from the store.
"""

# KFP copies only a step's source and reads its annotations as values: imports are inside, there is no
# `from __future__ import annotations` here, and outputs are an inline NamedTuple.
# mypy: disable-error-code=valid-type, disallow-untyped-decorators=False
# ruff: noqa: PLC0415
import os
from typing import NamedTuple

from kfp import dsl, kubernetes

from podferry.components import dataset, gpu_train, verify_checkpoint
from podferry.pipelines.remote_reads import VARIABLES

IMAGE = os.environ.get("TRAIN_IMAGE", "podferry:0.1.0-python3.12")
"""An image with `podferry[demo]`."""
SECRET = "podferry-store"  # noqa: S105 - the name of a Secret, not what it holds
"""Secret with the store's credentials. A local run reads the environment."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(dataset: str, checkpoints: str, epochs: int, batch: int) -> NamedTuple(
    "Outputs",
    [("staged_batch_ms", float), ("remote_batch_ms", float), ("blocked_ms", float), ("accuracy", float)],
):
    """Train a classifier, and time the loading of batches.

    Args:
        dataset: Reference of images below one folder per class.
        checkpoints: URI of the destination.
        epochs: Epochs in total.
        batch: Images per batch.

    Returns:
        staged_batch_ms: Median time to load a batch from the stage, milliseconds.
        remote_batch_ms: Median time to load a batch straight from the store, one connection.
        blocked_ms: Mean time that saving a checkpoint blocks the training.
        accuracy: Share of images classified correctly after the last epoch, 0 to 1.
    """
    from podferry.pipelines.read_write_split.training import train

    found = train(dataset, checkpoints, epochs, batch)
    return (found.staged_batch_ms, found.remote_batch_ms, found.blocked_ms, found.accuracy)


class Outputs(NamedTuple):
    """Those of the training."""

    staged_batch_ms: float
    remote_batch_ms: float
    blocked_ms: float
    accuracy: float


@dsl.pipeline(name="read-write-split")
def read_write_split(uri: str, checkpoints: str, epochs: int = 3, batch: int = 32) -> Outputs:
    """Train on read-only data in memory, with checkpoints that the agent uploads.

    Args:
        uri: URI of the images.
        checkpoints: URI of the destination.
        epochs: Epochs in total.
        batch: Images per batch.
    """
    data = dataset(uri, secret=SECRET)
    step = train(dataset=data.outputs["reference"], checkpoints=checkpoints, epochs=epochs, batch=batch)
    gpu_train(step, checkpoint_size="64Mi", gpus=0, secret=SECRET)
    # For the comparison alone: training that reads what the agent has staged needs no credentials.
    kubernetes.use_secret_as_env(step, SECRET, VARIABLES, optional=True)
    verify_checkpoint(of=step, secret=SECRET)
    return Outputs(**step.outputs)

"""Handwritten digits, end to end: dataset → cache → train → verify. The pipeline that `make demo` runs.

On a cluster the webhook injects the agent that `gpu_train` requests; under KFP's local runner the training
step starts its own. The code of the step is the same.
"""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, and outputs are an inline NamedTuple.
# mypy: disable-error-code=valid-type, disallow-untyped-decorators=False
# ruff: noqa: PLC0415
import os
from typing import NamedTuple

from kfp import dsl

from podferry.components import cache, dataset, gpu_train, verify_checkpoint

IMAGE = os.environ.get("PODFERRY_DIGITS_IMAGE", "podferry-digits:0.1.0-python3.12")
"""An image with `podferry[demo]`."""
CHECKPOINT_SIZE = "4Mi"
"""Maximum size of one checkpoint."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(dataset: str, checkpoints: str, epochs: int, seed: int) -> NamedTuple(
    "Outputs", [("accuracy", float), ("lineage", str)]
):
    """Train a small network on the digits.

    Args:
        dataset: Reference of the images.
        checkpoints: URI of the destination.
        epochs: Epochs in total, including those of earlier attempts.
        seed: Seed of the initial weights.

    Returns:
        accuracy: Share of test images classified correctly, 0 to 1.
        lineage: The lineage of the checkpoints.
    """
    from podferry.pipelines.digits_training import train

    return train(dataset, checkpoints, epochs, seed)


@dsl.pipeline(name="digits")
def digits(uri: str, checkpoints: str, epochs: int = 32, seed: int = 7) -> None:
    """Freeze the dataset, plan its memory, train, and verify that the checkpoints are durable.

    Args:
        uri: URI of PNG files below `train/<digit>/` and `test/<digit>/`.
        checkpoints: URI of the destination.
        epochs: Epochs in total.
        seed: Seed of the initial weights.
    """
    frozen = dataset(uri)
    planned = cache(frozen.outputs["reference"], checkpoint_size=CHECKPOINT_SIZE)
    reference = planned.outputs["reference"]
    trained = train(dataset=reference, checkpoints=checkpoints, epochs=epochs, seed=seed)
    gpu_train(trained, dataset=reference, checkpoints=checkpoints, checkpoint_size=CHECKPOINT_SIZE)
    # A run that resumes after the last epoch commits nothing, but its checkpoint is safe.
    verify_checkpoint(checkpoints, lineages=trained.outputs["lineage"], full=True)

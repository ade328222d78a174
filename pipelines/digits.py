"""Handwritten digits, end to end: dataset → cache → train → verify. The pipeline that `make demo` runs.

On a cluster the webhook injects the agent that `gpu_train` asks for; under KFP's local runner the training
step starts its own. The step's code is the same.
"""

# KFP copies the function's source alone into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports stand inside, and outputs are a NamedTuple in place.
# mypy: disable-error-code=valid-type, disallow-untyped-decorators=False
# ruff: noqa: PLC0415
import os
from typing import NamedTuple

from kfp import dsl

from podferry.components import freeze_dataset, gpu_train, plan_cache, verify

IMAGE = os.environ.get("PODFERRY_DIGITS_IMAGE", "podferry-digits:0.1.0-python3.12")
"""Holds `podferry[demo]`."""
CHECKPOINT_SIZE = "4Mi"
"""What one checkpoint takes at most."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(dataset: str, checkpoints: str, epochs: int, seed: int) -> NamedTuple(
    "Outputs", [("accuracy", float), ("lineage", str)]
):
    """Train a small network on the digits.

    Args:
        dataset: Reference of the images.
        checkpoints: URI of the destination.
        epochs: How many in all, those of earlier attempts included.
        seed: Other seeds, other first weights.

    Returns:
        accuracy: Share of the test images that are named correctly, 0 to 1.
        lineage: Which attempts belong together.
    """
    from podferry.pipelines.digits_training import train

    return train(dataset, checkpoints, epochs, seed)


@dsl.pipeline(name="digits")
def digits(dataset: str, checkpoints: str, epochs: int = 32, seed: int = 7) -> None:
    """Freeze the dataset, plan its cache, train, and say whether what was trained is durable.

    Args:
        dataset: URI of PNG files below `train/<digit>/` and `test/<digit>/`.
        checkpoints: URI of the destination.
        epochs: To train in all.
        seed: Other seeds, other first weights.
    """
    frozen = freeze_dataset(dataset)
    planned = plan_cache(frozen.outputs["reference"], checkpoint_size=CHECKPOINT_SIZE)
    reference = planned.outputs["reference"]
    trained = train(dataset=reference, checkpoints=checkpoints, epochs=epochs, seed=seed)
    gpu_train(trained, dataset=reference, checkpoints=checkpoints, checkpoint_size=CHECKPOINT_SIZE)
    # A run that resumes when all epochs are done commits nothing, and is safe all the same.
    verify(checkpoints, lineages=trained.outputs["lineage"], full=True)

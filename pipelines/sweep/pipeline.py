"""A sweep over learning rates with ParallelFor.

The dataset is listed inside the loop. So KFP's cache answers a trial whose inputs have not changed, and KFP's
local runner, which replaces outputs of steps outside a loop by the loop's item, runs it as well.
"""

# KFP copies only a step's source and reads its annotations as values: imports are inside, there is no
# `from __future__ import annotations` here, outputs are an inline NamedTuple, and lists are typing's.
# mypy: disable-error-code="valid-type, no-any-return", disallow-untyped-decorators=False
# ruff: noqa: PLC0415, UP006, UP035
import os
from typing import List, NamedTuple

from kfp import dsl

from podferry.components import dataset, gpu_train, verify_checkpoint

IMAGE = os.environ.get("TRAIN_IMAGE", "podferry:0.1.0-python3.12")
"""An image with `podferry[demo]`."""
SECRET = "podferry-store"  # noqa: S105 - the name of a Secret, not what it holds
"""Secret with the store's credentials. A local run reads the environment."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(dataset: str, checkpoints: str, rate: float, epochs: int) -> float:
    """Train with one learning rate; returns the accuracy, 0 to 1.

    Args:
        dataset: Reference of the images.
        checkpoints: URI of the destination.
        rate: Learning rate.
        epochs: Epochs in total.
    """
    from podferry.pipelines.sweep.training import train

    return train(dataset, checkpoints, rate, epochs)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def best(rates: List[float], accuracies: List[float]) -> NamedTuple(
    "Outputs", [("rate", float), ("accuracy", float)]
):
    """The trial with the highest accuracy.

    Args:
        rates: Learning rate of each trial.
        accuracies: Accuracy of each, in the same order.

    Returns:
        rate: Learning rate of the best.
        accuracy: Its accuracy.
    """
    accuracy, rate = max(zip(accuracies, rates, strict=True))
    return (rate, accuracy)


class Outputs(NamedTuple):
    """The best trial."""

    rate: float
    accuracy: float


@dsl.pipeline(name="sweep")
def sweep(uri: str, checkpoints: str, rates: List[float], epochs: int = 4) -> Outputs:
    """Train once per learning rate, verify each training, and pick the best.

    Args:
        uri: URI of PNG files below `train/<digit>/` and `test/<digit>/`.
        checkpoints: URI of the destination, the same for all trials.
        rates: Learning rates.
        epochs: Epochs of each trial.
    """
    with dsl.ParallelFor(rates) as rate:
        data = dataset(uri, secret=SECRET)
        step = train(dataset=data.outputs["reference"], checkpoints=checkpoints, rate=rate, epochs=epochs)
        gpu_train(step, checkpoint_size="16Mi", gpus=0, secret=SECRET)
        verify_checkpoint(of=step, secret=SECRET)
    found = best(rates=rates, accuracies=dsl.Collected(step.output))
    return Outputs(**found.outputs)

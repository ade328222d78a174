"""Dataset, cache, train, verify on images, with the pace of the training as outputs."""

# KFP copies only a step's source and reads its annotations as values: imports are inside, there is no
# `from __future__ import annotations` here, and outputs are an inline NamedTuple.
# mypy: disable-error-code=valid-type, disallow-untyped-decorators=False
# ruff: noqa: PLC0415
import os
from typing import NamedTuple

from kfp import dsl, kubernetes

from podferry.components import cache, dataset, gpu_train, verify_checkpoint
from podferry.pipelines.remote_reads import VARIABLES

IMAGE = os.environ.get("TRAIN_IMAGE", "podferry:0.1.0-python3.12")
"""An image with `podferry[demo]`."""
SECRET = "podferry-store"  # noqa: S105 - the name of a Secret, not what it holds
"""Secret with the store's credentials. A local run reads the environment."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(dataset: str, checkpoints: str, epochs: int, seed: int) -> NamedTuple(
    "Outputs",
    [
        ("first_images_per_second", float),
        ("first_waiting_share", float),
        ("later_images_per_second", float),
        ("later_waiting_share", float),
        ("remote_images_per_second", float),
        ("remote_waiting_share", float),
    ],
):
    """Train a small network on the digits, and measure its pace.

    Args:
        dataset: Reference of the images.
        checkpoints: URI of the destination.
        epochs: Epochs, at least 2.
        seed: Seed of the initial weights.

    Returns:
        first_images_per_second: In the first epoch, from the request for the dataset on.
        first_waiting_share: Share of that time spent waiting for data, 0 to 1.
        later_images_per_second: In the later epochs.
        later_waiting_share: The same of these.
        remote_images_per_second: In an epoch that reads its images straight from the store.
        remote_waiting_share: The same of that.
    """
    from podferry.pipelines.images.training import train

    found = train(dataset, checkpoints, epochs, seed)
    paces = (found.first, found.later, found.remote)
    return tuple(value for pace in paces for value in (pace.images_per_second, pace.waiting_share))


class Outputs(NamedTuple):
    """Those of the training."""

    first_images_per_second: float
    first_waiting_share: float
    later_images_per_second: float
    later_waiting_share: float
    remote_images_per_second: float
    remote_waiting_share: float


@dsl.pipeline(name="images")
def images(uri: str, checkpoints: str, epochs: int = 4, seed: int = 7) -> Outputs:
    """Freeze the images, plan their memory, train, and verify that the checkpoints are durable.

    Args:
        uri: URI of PNG files below `train/<digit>/`.
        checkpoints: URI of the destination.
        epochs: Epochs, at least 2.
        seed: Seed of the initial weights.
    """
    data = dataset(uri, secret=SECRET)
    plan = cache(data.outputs["reference"], checkpoint_size="16Mi", secret=SECRET)
    reference = plan.outputs["reference"]
    step = train(dataset=reference, checkpoints=checkpoints, epochs=epochs, seed=seed)
    gpu_train(step, checkpoint_size="16Mi", gpus=0, secret=SECRET)
    # For the comparison alone: training that reads what the agent has staged needs no credentials.
    kubernetes.use_secret_as_env(step, SECRET, VARIABLES, optional=True)
    verify_checkpoint(of=step, secret=SECRET)
    return Outputs(**step.outputs)

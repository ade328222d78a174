"""Click prediction: convert the rows once, train a wide-and-deep model, verify its checkpoints."""

# KFP copies only a step's source and reads its annotations as values: imports are inside, there is no
# `from __future__ import annotations` here, and outputs are an inline NamedTuple.
# mypy: disable-error-code=valid-type, disallow-untyped-decorators=False
# ruff: noqa: PLC0415
import os
from typing import NamedTuple

from kfp import dsl

from podferry.components import dataset, gpu_train, mount_secret, verify_checkpoint

IMAGE = os.environ.get("TRAIN_IMAGE", "podferry:0.1.0-python3.12")
"""An image with `podferry[demo]`."""
SECRET = "podferry-store"  # noqa: S105 - the name of a Secret, not what it holds
"""Secret with the store's credentials. A local run reads the environment."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def convert(reference: str, to: str) -> str:
    """Convert text to arrays, once per content; returns the reference of the arrays.

    Args:
        reference: The rows as text.
        to: URI for the arrays.
    """
    from podferry.components import prepared
    from podferry.pipelines.tabular.rows import BUCKETS, convert

    with prepared(reference, to, {"buckets": BUCKETS, "version": 1}) as p:
        if p.needed:
            convert(p.source, p.target)
    return p.reference


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(dataset: str, checkpoints: str, epochs: int) -> NamedTuple(
    "Outputs", [("rows_per_second", float), ("waiting_share", float), ("auc", float)]
):
    """Train a wide-and-deep model.

    Args:
        dataset: Reference of the arrays.
        checkpoints: URI of the destination.
        epochs: Epochs in total, including those of earlier attempts.

    Returns:
        rows_per_second: Rows trained per second, loading included.
        waiting_share: Share of the time spent loading arrays, 0 to 1.
        auc: Area under the curve on the test rows, 0 to 1.
    """
    from podferry.pipelines.tabular.training import train

    found = train(dataset, checkpoints, epochs)
    return (found.rows_per_second, found.waiting_share, found.auc)


class Outputs(NamedTuple):
    """Those of the training."""

    rows_per_second: float
    waiting_share: float
    auc: float


@dsl.pipeline(name="tabular")
def tabular(uri: str, arrays: str, checkpoints: str, epochs: int = 2) -> Outputs:
    """Freeze the rows, convert them unless that was done before, train, and verify.

    Args:
        uri: URI of the rows, as `rows.convert` reads them, below `train/` and `test/`.
        arrays: URI for the converted rows.
        checkpoints: URI of the destination.
        epochs: Epochs in total.
    """
    data = dataset(uri, secret=SECRET)
    converted = convert(reference=data.outputs["reference"], to=arrays)
    mount_secret(converted, SECRET)
    step = train(dataset=converted.output, checkpoints=checkpoints, epochs=epochs)
    gpu_train(step, checkpoint_size="64Mi", gpus=0, secret=SECRET)
    verify_checkpoint(of=step, secret=SECRET)
    return Outputs(**step.outputs)

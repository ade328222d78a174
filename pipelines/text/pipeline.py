"""Download, generate, train, upload: the shape of a job that fetches its data and saves its outputs.

The outputs are uploaded although the training fails.
"""

# KFP copies only a step's source and reads its annotations as values: imports are inside, there is no
# `from __future__ import annotations` here, and outputs are an inline NamedTuple.
# mypy: disable-error-code=valid-type, disallow-untyped-decorators=False
# ruff: noqa: PLC0415
import os
from typing import NamedTuple

from kfp import dsl

from podferry.components import gpu_train, mount_secret, sync, verify_checkpoint

IMAGE = os.environ.get("TRAIN_IMAGE", "podferry:0.1.0-python3.12")
"""An image with `podferry[demo]`."""
SECRET = "podferry-store"  # noqa: S105 - the name of a Secret, not what it holds
"""Secret with the store's credentials. A local run reads the environment."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def generate(reference: str, to: str) -> str:
    """Generate one array of characters from text files, once per content; returns its reference.

    Args:
        reference: The text files.
        to: URI for the arrays.
    """
    from podferry.components import prepared
    from podferry.pipelines.text.tokens import generate

    with prepared(reference, to, {"version": 1}) as p:
        if p.needed:
            generate(p.source, p.target)
    return p.reference


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(dataset: str, checkpoints: str, outputs: str, steps: int, fail_at: int) -> NamedTuple(
    "Outputs", [("bits", float), ("steps_before", int)]
):
    """Train a model that predicts the next character.

    Args:
        dataset: Reference of the arrays.
        checkpoints: URI of the checkpoints.
        outputs: URI of the training's curve.
        steps: Steps in total, including those of earlier attempts.
        fail_at: The step before which a first attempt fails on purpose; 0 for none.

    Returns:
        bits: Cross entropy on the test text, bits per character.
        steps_before: Steps that earlier attempts had completed.
    """
    from podferry.pipelines.text.training import train

    found = train(dataset, checkpoints, outputs, steps, fail_at)
    return (found.bits, found.steps_before)


class Outputs(NamedTuple):
    """Those of the training."""

    bits: float
    steps_before: int


@dsl.pipeline(name="text")
def text(source: str, work: str, steps: int = 1200, fail_at: int = 0) -> Outputs:
    """Download text, generate arrays, train, and verify; everything is below one prefix.

    Args:
        source: A web directory of text files, or any other dataset.
        work: URI of a prefix for the text, the arrays, the checkpoints and the outputs.
        steps: Steps in total.
        fail_at: The step before which a first attempt fails on purpose; 0 for none.
    """
    downloaded = sync(source, f"{work}/text", secret=SECRET)
    arrays = generate(reference=downloaded.outputs["reference"], to=f"{work}/arrays")
    mount_secret(arrays, SECRET)
    step = train(
        dataset=arrays.output,
        checkpoints=f"{work}/checkpoints",
        outputs=f"{work}/outputs",
        steps=steps,
        fail_at=fail_at,
    )
    gpu_train(step, checkpoint_size="16Mi", output_size="64Mi", gpus=0, secret=SECRET)
    verify_checkpoint(of=step, secret=SECRET)
    return Outputs(**step.outputs)

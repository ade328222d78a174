"""Shows the read/write split: pictures of the size that a photograph has as a thumbnail, made from noise."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
from PIL import Image

from demo.examples.example import Bucket, Findings, Outcome, Run
from demo.objects import put_objects
from podferry.contract.quantity import format_bytes

PICTURES, CLASSES, SIDE = 480, 4, 100
"""480 pictures of 100 x 100 pixels: about 30 kB each, since noise cannot be compressed."""
LEAST_ACCURACY = 0.9


class ReadWriteSplit:
    """See `demo.examples.example.Example`."""

    pipeline = "podferry.pipelines.read_write_split.pipeline:read_write_split"
    title = "Read from memory, write through the store's SDK"
    imitated = ("the pictures are synthetic: noise around one colour per class.",)
    packages = ("PIL", "numpy", "boto3")

    def put(self, bucket: Bucket, stack: ExitStack) -> str:
        """Write the pictures."""
        written = put_objects(f"{bucket.uri}/pictures", bucket.environ, dict(pictures()))
        return f"{PICTURES} pictures in {CLASSES} classes, {format_bytes(written)}, at {bucket.uri}/pictures"

    def runs(self, bucket: Bucket) -> Sequence[Run]:
        """One run."""
        given = {"uri": f"{bucket.uri}/pictures", "checkpoints": f"{bucket.uri}/checkpoints"}
        return [Run("dataset → train → verify", given)]

    def findings(self, outcomes: Sequence[Outcome], bucket: Bucket) -> Findings:
        """Both ways to load a batch."""
        [outcome] = outcomes
        found = outcome.outputs
        ratio = found["remote_batch_ms"] / found["staged_batch_ms"]
        rows = (
            (
                "batch from the stage",
                f"{found['staged_batch_ms']:.1f} ms",
                "median; reading and decoding 32 pictures",
            ),
            (
                "batch from the store",
                f"{found['remote_batch_ms']:.1f} ms",
                f"the same with boto3: {ratio:.1f} times that",
            ),
            ("saving blocked", f"{found['blocked_ms']:.1f} ms", "mean; the agent uploads afterwards"),
            ("accuracy", f"{found['accuracy']:.1%}", "of the pictures"),
        )
        wrong = found["accuracy"] < LEAST_ACCURACY
        return Findings(
            rows, [f"the accuracy is {found['accuracy']:.1%}, below {LEAST_ACCURACY:.0%}"] if wrong else []
        )


def pictures() -> Iterator[tuple[str, bytes]]:
    """Name and PNG file of each picture: noise around one colour per class, the same in every run."""
    random = np.random.default_rng(1)
    colours = random.integers(64, 192, (CLASSES, 3))
    for number in range(PICTURES):
        label = number % CLASSES
        pixels = colours[label] + random.integers(-64, 64, (SIDE, SIDE, 3))
        file = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
        yield f"class-{label}/{number:04d}.png", file.getvalue()


EXAMPLE = ReadWriteSplit()

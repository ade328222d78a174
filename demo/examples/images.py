"""Shows image classification: the pace of training with a cold stage, a warm one, and without podferry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from demo.examples.digits import put_digits
from demo.examples.example import Bucket, Findings, Outcome, Row, Run


class Images:
    """See `demo.examples.example.Example`."""

    pipeline = "podferry.pipelines.images.pipeline:images"
    title = "Image classification: images per second, and the share of waiting"
    imitated = ("the network is small and trains on the CPU.",)
    packages = ("numpy", "PIL", "sklearn", "boto3")

    def put(self, bucket: Bucket, stack: ExitStack) -> str:
        """Write the digits."""
        return put_digits(bucket)

    def runs(self, bucket: Bucket) -> Sequence[Run]:
        """Two trainings on one node: the second finds the stage of the first."""
        given = {"uri": f"{bucket.uri}/digits", "checkpoints": f"{bucket.uri}/checkpoints"}
        return [
            Run("Train with a cold stage", {**given, "seed": 1}),
            Run("Another training on the same node: the stage is warm", {**given, "seed": 2}),
        ]

    def findings(self, outcomes: Sequence[Outcome], bucket: Bucket) -> Findings:
        """The paces."""
        cold, warm = (outcome.outputs for outcome in outcomes)
        rows = (
            _row(
                "first epoch, cold", cold, "first", "from the request for the data on, with the agent's start"
            ),
            _row("first epoch, warm", warm, "first", "the same in the second training"),
            _row("later epochs", warm, "later", "from memory"),
            _row("without podferry", warm, "remote", "each image from the store, with boto3"),
        )
        slower = warm["later_images_per_second"] < warm["remote_images_per_second"]
        return Findings(
            rows, ["reading from memory was slower than reading from the store"] if slower else []
        )


def _row(name: str, outputs: Mapping[str, Any], prefix: str, meaning: str) -> Row:
    rate, share = outputs[f"{prefix}_images_per_second"], outputs[f"{prefix}_waiting_share"]
    return name, f"{rate:,.0f} images/s", f"{share:.0%} of the time waiting; {meaning}"


EXAMPLE = Images()

"""Shows distributed training: a worker fails, and the second run resumes from the last whole checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from demo.examples.digits import put_digits
from demo.examples.example import Bucket, Findings, Outcome, Run
from demo.ledger import Ledger

LINEAGE, WORKERS, EPOCHS, FAIL_AT = "digits-distributed", 2, 24, 16
LEAST_ACCURACY = 0.8


class Distributed:
    """See `demo.examples.example.Example`."""

    pipeline = "podferry.pipelines.distributed.pipeline:distributed"
    title = "Two workers, one checkpoint"
    imitated = ("the workers are two processes of one step, each with its own agent, in place of two pods.",)
    packages = ("numpy", "PIL", "sklearn")

    def put(self, bucket: Bucket, stack: ExitStack) -> str:
        """Write the digits."""
        return put_digits(bucket)

    def runs(self, bucket: Bucket) -> Sequence[Run]:
        """A run in which a worker fails, and the same run again."""
        given = {
            "uri": f"{bucket.uri}/digits",
            "checkpoints": f"{bucket.uri}/checkpoints",
            "lineage": LINEAGE,
            "epochs": EPOCHS,
            "workers": WORKERS,
            "fail_at": FAIL_AT,
        }
        first = Run(
            f"dataset → train with {WORKERS} workers → verify; one fails in epoch {FAIL_AT}", given, True
        )
        return [first, Run("The same run again: it resumes", given)]

    def findings(self, outcomes: Sequence[Outcome], bucket: Bucket) -> Findings:
        """What was committed, and where the second run began."""
        found = outcomes[-1].outputs
        commits = Ledger(f"{bucket.uri}/checkpoints", bucket.environ).commits(LINEAGE)
        parts = min((len(commit.files) for commit in commits), default=0)
        rows = (
            ("workers", str(WORKERS), "each writes its part of every checkpoint"),
            ("failed in epoch", str(FAIL_AT), "the last worker of the first run, on purpose"),
            ("resumed after epoch", str(found["epochs_before"]), "the newest checkpoint with all parts"),
            ("checkpoints", f"{len(commits)} durable", f"each of {parts} parts, committed together"),
            ("accuracy", f"{found['accuracy']:.1%}", "of the test images"),
        )
        return Findings(rows, list(_broken(found["epochs_before"], parts, found["accuracy"])))


def _broken(epochs_before: int, parts: int, accuracy: float) -> Sequence[str]:
    broken = []
    if epochs_before != FAIL_AT - 1:
        broken.append(f"the second run began after epoch {epochs_before}, not {FAIL_AT - 1}")
    if parts != WORKERS:
        broken.append(f"a commit has {parts} parts, not {WORKERS}")
    if accuracy < LEAST_ACCURACY:
        broken.append(f"the accuracy is {accuracy:.1%}, below {LEAST_ACCURACY:.0%}")
    return broken


EXAMPLE = Distributed()

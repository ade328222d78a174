"""Shows a sweep: three learning rates, one dataset, three lineages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from demo.examples.digits import put_digits
from demo.examples.example import Bucket, Findings, Outcome, Run

RATES = (0.0005, 0.005, 0.02)


class Sweep:
    """See `demo.examples.example.Example`."""

    pipeline = "podferry.pipelines.sweep.pipeline:sweep"
    title = "A sweep over learning rates: one dataset, a lineage per trial"
    imitated = ("KFP's local runner runs the trials in parallel on this machine.",)
    packages = ("numpy", "PIL", "sklearn")

    def put(self, bucket: Bucket, stack: ExitStack) -> str:
        """Write the digits."""
        return put_digits(bucket)

    def runs(self, bucket: Bucket) -> Sequence[Run]:
        """A sweep, and the same again, in which nothing is left to train."""
        given = {
            "uri": f"{bucket.uri}/digits",
            "checkpoints": f"{bucket.uri}/checkpoints",
            "rates": list(RATES),
        }
        return [Run(f"{len(RATES)} trials", given), Run("The same sweep again: each trial resumes", given)]

    def findings(self, outcomes: Sequence[Outcome], bucket: Bucket) -> Findings:
        """The best trial."""
        first, again = outcomes
        found = first.outputs
        rows = (
            ("trials", str(len(RATES)), f"learning rates {', '.join(map(str, RATES))}"),
            ("best", f"{found['accuracy']:.1%}", f"with the learning rate {found['rate']}"),
            ("first run", f"{first.seconds:.1f} s", "every trial trained and verified"),
            ("second run", f"{again.seconds:.1f} s", "every trial restored its last checkpoint"),
        )
        same = found == again.outputs
        return Findings(rows, [] if same else [f"the second run found {again.outputs}, the first {found}"])


EXAMPLE = Sweep()

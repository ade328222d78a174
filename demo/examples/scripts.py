"""Shows code that ships with the job: the script is a dataset of its own, and is changed between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from demo.examples.example import Bucket, Findings, Outcome, Run
from demo.objects import put_objects

SCRIPT = """import pathlib, sys
data, checkpoints, restored = sys.argv[1:]
numbers = [int(line) for path in pathlib.Path(data).iterdir() for line in path.read_text().split()]
weights = pathlib.Path(checkpoints, "weights.tmp")
weights.write_text(f"{WHAT} {sum(numbers) / len(numbers)}")
weights.rename(weights.with_suffix(".txt"))
print(WHAT, sum(numbers) / len(numbers))
"""
FIRST, SECOND = (f"WHAT = {word!r}\n{SCRIPT}" for word in ("mean", "average"))


class Scripts:
    """See `demo.examples.example.Example`."""

    pipeline = "podferry.pipelines.scripts.pipeline:scripts"
    title = "Code that ships with the job"
    imitated = ("the data are synthetic numbers, and the script only computes their mean.",)
    packages = ()

    def put(self, bucket: Bucket, stack: ExitStack) -> str:
        """Write the data, and both versions of the script."""
        numbers = {f"{part}.txt": "\n".join(map(str, range(part, 100, 4))).encode() for part in range(4)}
        put_objects(f"{bucket.uri}/numbers", bucket.environ, numbers)
        put_objects(f"{bucket.uri}/code/v1", bucket.environ, {"train.py": FIRST.encode()})
        put_objects(f"{bucket.uri}/code/v2", bucket.environ, {"train.py": SECOND.encode()})
        return f"100 numbers in {len(numbers)} files, and a script in two versions, at {bucket.uri}"

    def runs(self, bucket: Bucket) -> Sequence[Run]:
        """A run with each version."""
        given = {"data": f"{bucket.uri}/numbers", "checkpoints": f"{bucket.uri}/checkpoints"}
        return [
            Run("The first version of the script", {**given, "code": f"{bucket.uri}/code/v1"}),
            Run("The second version, the same image", {**given, "code": f"{bucket.uri}/code/v2"}),
        ]

    def findings(self, outcomes: Sequence[Outcome], bucket: Bucket) -> Findings:
        """What each version printed."""
        printed = [str(outcome.outputs["Output"]) for outcome in outcomes]
        rows = [(f"version {number}", text, "printed last") for number, text in enumerate(printed, start=1)]
        wanted = ["mean 49.5", "average 49.5"]
        return Findings(rows, [] if printed == wanted else [f"the scripts printed {printed}, not {wanted}"])


EXAMPLE = Scripts()

"""Shows one example: starts a store, puts the data there, runs the pipeline, prints the report."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from demo.examples.example import Bucket, Example, Outcome, Run
from demo.examples.flow import run_pipeline
from demo.failure import DemoError
from demo.flow import BEGAN
from demo.run import memory_folder
from demo.screen import Bar, Screen
from demo.store import BUCKET, environment, object_store
from podferry.contract.suggest import did_you_mean
from podferry.pipelines.digits_training import STAGE_VARIABLE

EXAMPLES = {
    "distributed": "demo.examples.distributed",
    "images": "demo.examples.images",
    "read-write-split": "demo.examples.read_write_split",
    "scripts": "demo.examples.scripts",
    "sweep": "demo.examples.sweep",
    "tabular": "demo.examples.tabular",
    "text": "demo.examples.text",
}
"""The module with the object `EXAMPLE`, by the name after `PIPELINE=`."""

LOCAL = "KFP's local runner stands for a cluster: the training step starts its own agent, none is injected."
STORE = "the object store is a small S3 server over files on this machine, without a network in between."


def load(name: str) -> Example:
    """The example of that name.

    Raises:
        DemoError: There is none, or a package that it needs is not installed.
    """
    if name not in EXAMPLES:
        raise DemoError(
            f"no example {name!r}. {did_you_mean(name, EXAMPLES, 'There are: ' + ', '.join(EXAMPLES))}"
        )
    example: Example = importlib.import_module(EXAMPLES[name]).EXAMPLE
    missing = [one for one in example.packages if importlib.util.find_spec(one) is None]
    if missing:
        raise DemoError(
            f"{name} needs {', '.join(missing)}, which is not installed: pip install {' '.join(missing)}"
        )
    return example


def show(name: str, build: Path, screen: Screen) -> list[str]:
    """Run the example; what is not as promised.

    Raises:
        DemoError: It cannot be run to its end.
        FerryError: The store's.
    """
    example = load(name)
    build.mkdir(parents=True, exist_ok=True)
    screen.step(1, example.title)
    with ExitStack() as stack:
        url = stack.enter_context(object_store())
        # Trainings that name their stage share it, as on one node.
        stage = stack.enter_context(TemporaryDirectory(prefix="podferry-demo-", dir=memory_folder()))
        kept = {STAGE_VARIABLE: f"{stage}/dataset"}
        bucket = Bucket(f"s3://{BUCKET}", {**environment(url), **kept})
        screen.say(f"a small S3 server over files, at {url}")
        screen.say(example.put(bucket, stack))
        outcomes = [
            _run(example, number, run, bucket, build, screen)
            for number, run in numbered(example.runs(bucket))
        ]
        found = example.findings(outcomes, bucket)
    screen.step(2 + len(outcomes), "Report")
    screen.table(found.rows)
    screen.imitated([STORE, LOCAL, *example.imitated])
    return list(found.broken)


def numbered(runs: Sequence[Run]) -> list[tuple[int, Run]]:
    """The runs with their numbers in the report, which begins with the data."""
    return list(enumerate(runs, start=2))


def _run(example: Example, number: int, run: Run, bucket: Bucket, build: Path, screen: Screen) -> Outcome:
    screen.step(number, run.title)
    log = build / f"run-{number - 1}.log"
    began = time.monotonic()
    with screen.bar("starting KFP's local runner") as bar:
        outputs = run_pipeline(
            example.pipeline, run.arguments, build / "kfp", log, bucket.environ, _notes(bar)
        )
    seconds = time.monotonic() - began
    if (outputs is None) != run.fails:
        verdict = "failed" if outputs is None else "succeeded, and should have failed"
        raise DemoError(f"the run {verdict} after {seconds:.1f} s; its log: {log}")
    screen.say(
        f"{'failed, as expected,' if run.fails else 'succeeded'} after {seconds:.1f} s; its log: {log}"
    )
    return Outcome(run, outputs or {}, seconds)


def _notes(bar: Bar) -> Callable[[str], None]:
    """Shows the name of the step that begins."""

    def note(line: str) -> None:
        if began := BEGAN.search(line.encode()):
            bar.note(began[1].decode())

    return note

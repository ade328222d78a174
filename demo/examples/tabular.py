"""Shows click prediction on synthetic rows in Criteo's format."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np

from demo.examples.example import Bucket, Findings, Outcome, Run
from demo.objects import put_objects
from podferry.contract.quantity import format_bytes
from podferry.pipelines.tabular.rows import CATEGORIES, INTEGERS

SHARDS, TEST_SHARDS, ROWS = 8, 2, 2_500
"""10 shards of 2,500 rows."""
VALUES = 40
"""Different categories in a field."""
MISSING = 0.1
LEAST_AUC = 0.7


class Tabular:
    """See `demo.examples.example.Example`."""

    pipeline = "podferry.pipelines.tabular.pipeline:tabular"
    title = "Click prediction on tabular rows: convert once, then train a wide-and-deep model"
    imitated = ("the rows are synthetic, in the format of Criteo's challenge.",)
    packages = ("numpy",)

    def put(self, bucket: Bucket, stack: ExitStack) -> str:
        """Write the shards."""
        written = put_objects(f"{bucket.uri}/rows", bucket.environ, dict(shards()))
        rows, files = (SHARDS + TEST_SHARDS) * ROWS, SHARDS + TEST_SHARDS
        return f"{rows:,} rows in {files} compressed shards, {format_bytes(written)}, at {bucket.uri}/rows"

    def runs(self, bucket: Bucket) -> Sequence[Run]:
        """A run, and one with more epochs, which finds the converted rows and resumes."""
        folders = {"uri": "rows", "arrays": "arrays", "checkpoints": "checkpoints"}
        given = {name: f"{bucket.uri}/{folder}" for name, folder in folders.items()}
        return [
            Run("Convert, train for 2 epochs", {**given, "epochs": 2}),
            Run("2 epochs more: the conversion is found", {**given, "epochs": 4}),
        ]

    def findings(self, outcomes: Sequence[Outcome], bucket: Bucket) -> Findings:
        """Speed, waiting and accuracy."""
        first, second = (outcome.outputs for outcome in outcomes)
        rows = (
            ("rows", f"{first['rows_per_second']:,.0f} rows/s", "first run, loading included"),
            ("waiting for data", f"{first['waiting_share']:.1%}", "of the training: loading the arrays"),
            ("first run", f"{outcomes[0].seconds:.1f} s", "with the conversion"),
            ("second run", f"{outcomes[1].seconds:.1f} s", "the converted rows were found"),
            ("AUC", f"{first['auc']:.3f} → {second['auc']:.3f}", "of the test rows"),
        )
        wrong = [f"the AUC is {second['auc']:.3f}, below {LEAST_AUC}"] if second["auc"] < LEAST_AUC else []
        return Findings(rows, wrong)


def shards() -> Iterator[tuple[str, bytes]]:
    """Name and content of each shard, the same in every run."""
    random = np.random.default_rng(3)
    weights = random.normal(0, 0.35, (CATEGORIES, VALUES))
    slopes = random.normal(0, 0.2, INTEGERS)
    for number in range(SHARDS + TEST_SHARDS):
        name = f"train/{number:02d}" if number < SHARDS else f"test/{number - SHARDS:02d}"
        yield f"{name}.tsv.gz", gzip.compress(_shard(random, weights, slopes).encode(), mtime=0)


def _shard(random: np.random.Generator, weights: np.ndarray, slopes: np.ndarray) -> str:
    """Rows whose clicks depend on every field; some fields are missing."""
    integers = random.geometric(0.1, (ROWS, INTEGERS))
    values = random.integers(0, VALUES, (ROWS, CATEGORIES))
    scores = weights[np.arange(CATEGORIES), values].sum(axis=1) + (np.log1p(integers) - 2) @ slopes - 1
    clicks = random.random(ROWS) < 1 / (1 + np.exp(-scores))
    missing = random.random((ROWS, INTEGERS + CATEGORIES)) < MISSING
    lines = []
    for click, numbers, categories, gone in zip(clicks, integers, values, missing, strict=True):
        texts = [*map(str, numbers), *(f"{value * 2654435761 % 2**32:08x}" for value in categories)]
        kept = ("" if absent else text for text, absent in zip(texts, gone, strict=True))
        lines.append("\t".join((str(int(click)), *kept)) + "\n")
    return "".join(lines)


EXAMPLE = Tabular()

"""What an example pipeline needs to be shown: its data, its runs, the values that it reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

Row = tuple[str, str, str]
"""Name, value and meaning of one line of the report."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """An empty bucket of the embedded object store.

    Attributes:
        uri: `s3://NAME`.
        environ: The variables that give access to it.
    """

    uri: str
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the pipeline.

    Attributes:
        title: What is different about it.
        arguments: Those of the pipeline.
        fails: Whether it is expected to fail.
    """

    title: str
    arguments: Mapping[str, Any]
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        run: The run.
        outputs: The pipeline's outputs by name; empty if it failed.
        seconds: Its duration.
    """

    run: Run
    outputs: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class Findings:
    """What the runs have shown.

    Attributes:
        rows: The report.
        broken: Sentences about what is not as promised; empty if all is.
    """

    rows: Sequence[Row]
    broken: Sequence[str] = field(default=())


class Example(Protocol):
    """A pipeline that the demo can show. One module below `demo.examples` per pipeline has such an object."""

    @property
    def pipeline(self) -> str:
        """`MODULE:NAME` of the pipeline, imported in the process that runs it."""

    @property
    def title(self) -> str:
        """One line about it."""

    @property
    def imitated(self) -> Sequence[str]:
        """Sentences about what is not real here: printed with the report."""

    @property
    def packages(self) -> Sequence[str]:
        """Packages that it needs beyond `podferry[demo]`."""

    def put(self, bucket: Bucket, stack: ExitStack) -> str:
        """Write the data into the bucket; returns a line about it. `stack` ends what it starts."""

    def runs(self, bucket: Bucket) -> Sequence[Run]:
        """What to run, in this order."""

    def findings(self, outcomes: Sequence[Outcome], bucket: Bucket) -> Findings:
        """The report."""

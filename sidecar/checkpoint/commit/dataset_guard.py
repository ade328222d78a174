"""Keeps training runs on different datasets apart if they share a lineage.

A lineage that was named by hand, or is that of a Job, may be used with another dataset. Its weights must not
be taken for those of this run, nor may this run remove them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podferry.contract.code_version import CodeVersion, code_changes
from podferry.contract.destination.commit import Commit
from podferry.contract.destination.provenance import DatasetChange, DatasetVersion, dataset_changes
from podferry.contract.errors import Problem, Refused
from podferry.contract.uri import Uri


@dataclass(frozen=True, slots=True)
class DatasetGuard:
    """Compares commits with the datasets of this run.

    Attributes:
        lineage: The lineage's URI.
        datasets: Those of this run, as they were listed.
        rank: This pod's rank. Ranks may have datasets of their own: commits of others are not compared.
        option: A setting and its value as the user writes them.
        code: What this run runs, as far as it is known; a change is named, never refused.
    """

    lineage: Uri
    datasets: tuple[DatasetVersion, ...]
    rank: int | None = None
    option: Callable[[str, str], str] = "{} {}".format
    code: CodeVersion | None = None

    def changes(self, commit: Commit) -> list[DatasetChange]:
        """How the datasets differ from those that a commit was trained on, as far as it records them."""
        return dataset_changes(commit.datasets, self.datasets) if commit.rank == self.rank else []

    def describe_changes(self, commit: Commit) -> tuple[str, ...]:
        """The changes for people, with the run that made the commit: its data may be on another machine."""
        by = f" (the checkpoint is by {commit.origin})" if commit.origin else ""
        return tuple(f"{change}{by}" for change in self.changes(commit))

    def describe_code(self, commit: Commit) -> tuple[str, ...]:
        """How the code differs from the one that made the commit, for people."""
        return code_changes(commit.code, self.code) if commit.rank == self.rank else ()

    def is_foreign(self, commit: Commit) -> bool:
        """Whether a commit was trained on another dataset."""
        return any(change.replaced for change in self.changes(commit))

    def check(self, commit: Commit) -> None:
        """Raise `Refused` before a commit of this lineage is restored that was trained on another dataset."""
        Refused.raise_any(
            Problem(f"{self.lineage} was trained on another dataset", str(change), self._remedy(commit))
            for change in self.changes(commit)
            if change.replaced
        )

    def _remedy(self, commit: Commit) -> str:
        weights = self.option("restore", str(self.lineage / commit.checkpoint))
        own = f"Give this run a lineage of its own, {self.option('lineage', 'NAME')}"
        return f"{own}; for a first start with the weights of {commit.name}, add {weights} to it"

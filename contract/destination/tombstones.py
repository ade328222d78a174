"""Retention: which commits to remove, and the tombstone of a removal in progress. Format 1.

    <lineage>/.podferry/removing/<remover>.json       what is being removed, while it is

A tombstone is written before the first deletion, and deleted after the last. Uploads avoid the names in it;
the next removal finishes what a killed one had settled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import msgspec

from podferry.contract.destination.commit import Commit
from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.destination.series import series_of
from podferry.contract.versioned_json import document_decoder

FORMAT = 1
TOMBSTONES = f"{PRIVATE}/removing"
SERIES_KEPT = 4
"""Series of names whose newest sure commit stays: `step-#`, `best`, `last` and one more."""


class Tombstone(msgspec.Struct, frozen=True):
    """A removal in progress.

    Attributes:
        format: Version of this document.
        collector: Id of the garbage collector, unique to one instance.
        planned: Objects to delete, relative to the lineage, and their bytes. Only the collector touches them.
        settled: Objects to delete unless a commit lists them, confirmed after they had been written as
            planned: anyone may delete what is left of them.
    """

    format: int
    collector: str = msgspec.field(name="remover")
    planned: dict[str, int]
    settled: dict[str, int]


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """What to remove.

    Attributes:
        commits: Commits, oldest first.
        objects: Objects that no remaining commit lists: names relative to the lineage, and their bytes.
    """

    commits: tuple[Commit, ...] = ()
    objects: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Sum of the objects' sizes."""
        return sum(self.objects.values())

    def within(self, earlier: RemovalPlan) -> RemovalPlan:
        """The intersection of two plans."""
        numbers = {commit.sequence for commit in earlier.commits}
        return RemovalPlan(
            tuple(commit for commit in self.commits if commit.sequence in numbers),
            {name: size for name, size in self.objects.items() if name in earlier.objects},
        )


def plan_removal(
    commits: Iterable[Commit], complete: Collection[int], keep: int, protected: Collection[str] = ()
) -> tuple[Commit, ...]:
    """The commits to remove, oldest first: all but the newest `keep` complete ones, and the sure ones below.

    Of each series of names, the newest sure one stays: `vocab.pt` pushes out no `model-200.pt`. That holds
    for the `SERIES_KEPT` newest series, so names that are all different do not keep everything.

    A damaged commit among the newest stays but does not count, nor does a doubtful one if a later sure commit
    has its name: so the last good one is never removed, nor the last one that `auto` would restore.

    Args:
        commits: All commits of a lineage, with their effective confidence.
        complete: Sequence numbers of commits with all their data, as far as `decides` needs them.
        keep: At least 1.
        protected: Names or folders of checkpoints to keep in addition.
    """
    ordered = sorted(commits, key=lambda commit: commit.sequence)
    good = [commit for commit in reversed(ordered) if commit.sequence in complete]
    counting = _counting(good)
    if len(counting) < max(keep, 1):
        return ()
    oldest = counting[max(keep, 1) - 1].sequence
    newest_sure = set(_newest_sure(good).values())
    return tuple(
        commit
        for commit in ordered
        if commit.sequence < oldest
        and commit.sequence not in newest_sure
        and {commit.name, commit.checkpoint}.isdisjoint(protected)
    )


def decides(complete: Collection[Commit], keep: int) -> tuple[bool, frozenset[str]]:
    """Whether complete commits, newest first, are enough for `plan_removal`, and which series are sure."""
    return len(_counting(complete)) >= max(keep, 1), frozenset(_newest_sure(complete))


def adds_series(commit: Commit, series: Collection[str]) -> bool:
    """Whether a complete commit would be the sure one of one more series that is kept."""
    return commit.is_sure and len(series) < SERIES_KEPT and series_of(commit.name) not in series


def _newest_sure(complete: Iterable[Commit]) -> dict[str, int]:
    """The sequence of the newest sure one of each series that is kept; `complete` is newest first."""
    found: dict[str, int] = {}
    for commit in complete:
        if adds_series(commit, found):
            found[series_of(commit.name)] = commit.sequence
    return found


def _counting(complete: Iterable[Commit]) -> list[Commit]:
    """Of complete commits, newest first, all but doubtful ones whose name a later sure one has."""
    sure: set[str] = set()
    found = []
    for commit in complete:
        if commit.is_sure:
            sure.add(commit.name)
        if commit.is_sure or commit.name not in sure:
            found.append(commit)
    return found


def listed_objects(commits: Iterable[Commit]) -> dict[str, int]:
    """All data objects that commits list, except under `.podferry`: names in the lineage, and their bytes."""
    return {
        file.object: file.size
        for commit in commits
        for file in commit.files
        if file.object.partition("/")[0] != PRIVATE
    }


def tombstone_name(collector: str) -> str:
    """The name of a tombstone, relative to the lineage."""
    return f"{TOMBSTONES}/{collector}.json"


decode_tombstone = document_decoder(Tombstone, FORMAT)

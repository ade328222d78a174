"""Which commits go where only the newest few are kept, and the record of a removal under way. Format 1.

    <lineage>/.podferry/removing/<remover>.json       what is being removed, for as long as it is

The record is there before anything goes, and its remover takes it away when all is gone. Whoever uploads
keeps clear of the names in it; whoever removes next finishes what a remover that was killed has settled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import msgspec

from podferry.contract.commit import PRIVATE, Commit
from podferry.contract.versioned_json import decode_document

FORMAT = 1
TOMBSTONES = f"{PRIVATE}/removing"


class Tombstone(msgspec.Struct, frozen=True):
    """A removal under way.

    Attributes:
        format: Version of this document.
        remover: Who removes, unique to one life of it.
        planned: Objects that may go, relative to the lineage, and their bytes. Nobody else touches them.
        settled: Objects that go unless a commit lists them, seen to be up for removal after they had been
            planned in writing: what is left of them, anybody may remove.
    """

    format: int
    remover: str
    planned: dict[str, int]
    settled: dict[str, int]


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """What is to go.

    Attributes:
        going: Commits, oldest first.
        objects: What no other commit lists then: names relative to the lineage, and their bytes.
    """

    going: tuple[Commit, ...] = ()
    objects: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Sum of the objects' sizes."""
        return sum(self.objects.values())

    def within(self, earlier: RemovalPlan) -> RemovalPlan:
        """What both plans have."""
        numbers = {commit.sequence for commit in earlier.going}
        return RemovalPlan(
            tuple(commit for commit in self.going if commit.sequence in numbers),
            {name: size for name, size in self.objects.items() if name in earlier.objects},
        )


def plan_removal(
    commits: Iterable[Commit], whole: Collection[int], keep: int, protected: Collection[str] = ()
) -> RemovalPlan:
    """What goes where the newest `keep` whole commits stay.

    The number counts whole ones: a damaged commit among the newest stays, and takes no whole one's place. So
    the last good one is never among those that go, whatever the number.

    Args:
        commits: All of a lineage; one that is left out would lose its data.
        whole: Numbers of commits whose data is all there, at least of the newest `keep` such.
        keep: From 1.
        protected: Names or folders of checkpoints that stay besides.
    """
    ordered = sorted(commits, key=lambda commit: commit.sequence)
    good = [commit.sequence for commit in ordered if commit.sequence in whole]
    if len(good) < max(keep, 1):
        return RemovalPlan()
    oldest = good[-max(keep, 1)]
    going = tuple(
        commit
        for commit in ordered
        if commit.sequence < oldest and commit.name not in protected and commit.checkpoint not in protected
    )
    numbers = {commit.sequence for commit in going}
    kept = listed_objects(commit for commit in ordered if commit.sequence not in numbers)
    return RemovalPlan(
        going, {name: size for name, size in listed_objects(going).items() if name not in kept}
    )


def listed_objects(commits: Iterable[Commit]) -> dict[str, int]:
    """All data that commits list, by its name relative to the lineage, and its bytes.

    Records are no data, whatever a commit says.
    """
    return {
        file.object: file.size
        for commit in commits
        for file in commit.files
        if file.object.partition("/")[0] != PRIVATE
    }


def tombstone_name(remover: str) -> str:
    """Where a removal's record lies, relative to the lineage."""
    return f"{TOMBSTONES}/{remover}.json"


def encode_tombstone(removing: Tombstone) -> bytes:
    """The record as indented JSON: people read it in a bucket's browser."""
    return msgspec.json.format(msgspec.json.encode(removing), indent=1)


def decode_tombstone(data: bytes, source: str) -> Tombstone:
    """Read a record.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: No such record.
    """
    return decode_document(data, Tombstone, FORMAT, source)

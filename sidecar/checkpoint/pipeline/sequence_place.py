"""Which sequence the commit of a version gets, so that sequences show the ages of versions.

Versions are not always committed in the order of their ages: a pod that is ending sends its newest first,
and one that was refused for good is set apart while the next ones go ahead. Whatever goes ahead leaves a
sequence free for each older version that still waits. A version takes one of these later, and leaves those
above it to the waiting ones that are newer than itself. So no older version gets a higher sequence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from podferry.sidecar.checkpoint.commit.commit_log import SequencePlace
from podferry.sidecar.state.journal import CheckpointRecord


def place_of(number: int, waiting: Collection[int], sequences: Mapping[int, int]) -> SequencePlace:
    """The place of a version among those that wait and those that are committed.

    Args:
        number: The version's number, which is its age.
        waiting: The numbers of versions that are not committed.
        sequences: Sequences of committed versions, by number: at least the next newer one of each that waits.
    """
    newer = _next_newer(number, sequences)
    if newer is None:
        older = [one for one in waiting if one < number]
        return SequencePlace(reserve=sum(_next_newer(one, sequences) is None for one in older))
    return SequencePlace(below=sequences[newer], between=sum(number < one < newer for one in waiting))


def with_sequence(
    number: int, sequence: int, waiting: Collection[int], sequences: Mapping[int, int]
) -> dict[int, int]:
    """`sequences` with that of one more commit, without those that no waiting version needs.

    Needed are the next newer one of each that waits, and the newest: a version may wait for weeks.
    """
    if any(known < number and at >= sequence for known, at in sequences.items()):
        return dict(sequences)  # the trainer returned to what was committed long ago: no room is below that
    known = {**sequences, number: sequence}
    needed = {max(known), *(_next_newer(one, known) for one in waiting)}
    return {one: at for one, at in known.items() if one in needed}


def _next_newer(number: int, sequences: Mapping[int, int]) -> int | None:
    return min((one for one in sequences if one > number), default=None)


class CommitOrder:
    """Which commits of waiting versions began, and which sequences were given, in the journal's record."""

    def __init__(self, record: CheckpointRecord) -> None:
        self._record = record

    def begin(self, number: int, waiting: Collection[int]) -> bool:
        """A commit begins; returns whether this has to be saved first, because older versions wait."""
        if min(waiting, default=number) >= number:
            return False
        self._record.unsettled = sorted({*self._record.unsettled, number})
        return True

    def replace(self, older: int, newer: int) -> None:
        """A newer version of the same name waits for what the older one waited for."""
        if older in self._record.unsettled:
            self._record.unsettled = sorted({*self._record.unsettled, newer})

    def settle(self, number: int, waiting: Collection[int]) -> None:
        """It is known whether a version's commit exists; what waits no more is forgotten."""
        kept = {*waiting} - {number}
        self._record.unsettled = [one for one in self._record.unsettled if one in kept]

    def commit(self, number: int, sequence: int, waiting: Collection[int]) -> None:
        """A version got a sequence."""
        self._record.sequences = with_sequence(number, sequence, waiting, self._record.sequences)

    def unsettled(self, waiting: Collection[int]) -> int:
        """The highest number of a waiting version that may be committed, or 0."""
        return max({*self._record.unsettled}.intersection(waiting), default=0)

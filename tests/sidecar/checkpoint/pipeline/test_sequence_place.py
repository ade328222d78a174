"""Sequences show ages, in whatever order versions are committed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.destination.commit import Commit
from podferry.sidecar.checkpoint.commit.commit_log import SequencePlace, number_under
from podferry.sidecar.checkpoint.pipeline.sequence_place import place_of, with_sequence


@pytest.mark.parametrize(
    ("number", "waiting", "sequences", "place"),
    [
        (1, [], {}, SequencePlace()),
        (4, [1, 2, 3], {}, SequencePlace(reserve=3)),
        (4, [1, 3, 5], {2: 2}, SequencePlace(reserve=1)),  # commit 2 has left one for version 1
        (2, [1, 3, 4], {5: 9}, SequencePlace(below=9, between=2)),
        (4, [1, 3], {2: 2, 5: 9}, SequencePlace(below=9)),
    ],
)
def test_what_goes_ahead_leaves_room_and_the_others_take_it(
    number: int, waiting: list[int], sequences: dict[int, int], place: SequencePlace
) -> None:
    assert place_of(number, waiting, sequences) == place


class Lineage:
    """Commits of one agent, as `Committer` numbers them."""

    def __init__(self) -> None:
        self.commits: dict[int, Commit] = {}
        self.kept: dict[int, int] = {}

    def commit(self, number: int, waiting: list[int]) -> int:
        place, last = place_of(number, waiting, self.kept), max(self.commits, default=0)
        sequence, lower = last + 1 + place.reserve, last
        if place.below is not None:
            sequence = number_under(self.commits.get(place.below), self.commits, place.between)
            lower = max((taken for taken in self.commits if taken < sequence), default=0)
        now = datetime.now(UTC)
        self.commits[sequence] = Commit(
            1, sequence, "run", f"{number}", f"{number}", None, now, (), "w", reserved=sequence - 1 - lower
        )
        self.kept = with_sequence(number, sequence, waiting, self.kept)
        return sequence


@given(st.data())
def test_no_order_of_commits_makes_an_older_version_newer(data: st.DataObject) -> None:
    """Versions become complete, are committed and are replaced in any order."""
    lineage, waiting, number = Lineage(), list[int](), 0
    found: dict[int, int] = {}
    for move in data.draw(st.lists(st.sampled_from("ncccr"), max_size=40)):
        if move == "n" or not waiting:
            number += 1
            waiting.append(number)
        elif move == "c":
            chosen = data.draw(st.sampled_from(waiting))
            waiting.remove(chosen)
            found[chosen] = lineage.commit(chosen, waiting)
            assert len(lineage.kept) <= len(waiting) + 1
        else:
            waiting.remove(data.draw(st.sampled_from(waiting)))
        by_age = [found[one] for one in sorted(found)]
        assert by_age == sorted(by_age)


def test_a_return_to_an_old_commit_leaves_no_room() -> None:
    assert with_sequence(3, 5, [2], {1: 7}) == {1: 7}

"""What was moved in, and what was written at its name."""

from __future__ import annotations

import pytest

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.move_tracker import MoveTracker
from podferry.sidecar.runtime.file_identity import FileIdentity


def step(*names: str) -> Candidate:
    return Candidate("step-1", tuple((f"step-1/{name}", FileIdentity(1, 2, 3)) for name in names))


def update(moves: MoveTracker, candidate: Candidate, *closed: str) -> None:
    moves.update({candidate.name: candidate}, closed, lambda name: name == "step-1")


def test_a_directory_was_moved_in_with_the_files_that_it_had_then() -> None:
    moves = MoveTracker()
    moves.report({"step-1", "step-1/a"}, set())
    update(moves, step("a"), "step-1/a")
    assert moves.was_moved_in(step("a"))
    assert not moves.was_moved_in(step("a", "b"))
    update(moves, step("a"))
    assert moves.was_moved_in(step("a"))


@pytest.mark.parametrize("same_scan", [True, False])
def test_a_file_that_is_closed_after_the_move_of_its_directory_voids_it(same_scan: bool) -> None:
    moves = MoveTracker()
    moves.report({"step-1"}, set())
    if not same_scan:
        update(moves, step("a"))
    update(moves, step("a"), "step-1/other", "a")
    assert moves.was_moved_in(step("a"))
    update(moves, step("a"), "step-1/a")
    assert (moves.was_moved_in(step("a")), moves.was_written_in_place(step("a"))) == (False, True)
    moves.report({"step-1"}, set())
    update(moves, step("a"))
    assert (moves.was_moved_in(step("a")), moves.was_written_in_place(step("a"))) == (True, False)

"""The table of states is what the code enforces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline import checkpoint_version
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import (
    TRANSITIONS,
    CheckpointVersion,
    IllegalTransition,
    VersionState,
)
from podferry.sidecar.runtime.file_identity import FileIdentity


def candidate(number: int, name: str = "last") -> Candidate:
    return Candidate(name, ((f"{name}.pt", FileIdentity(number, 1, number)),))


def test_the_table_in_the_documentation_is_the_table_in_the_code() -> None:
    assert checkpoint_version.__doc__ is not None
    states = {state.value: state for state in VersionState}
    rows = [line.split()[:2] for line in checkpoint_version.__doc__.splitlines() if line.startswith("    ")]
    documented = {(states[row[0]], states[row[1]]) for row in rows if set(row) <= states.keys()}
    assert documented == {(state, to) for state, targets in TRANSITIONS.items() for to in targets}
    assert TRANSITIONS.keys() == set(VersionState)


@given(st.sampled_from(VersionState), st.lists(st.sampled_from(VersionState), max_size=12))
def test_only_transitions_of_the_table_are_possible(start: VersionState, path: list[VersionState]) -> None:
    version = CheckpointVersion(candidate(1), start)
    for to in path:
        before = version.state
        if to in TRANSITIONS[before]:
            version.move(to)
            assert version.state is to
        else:
            with pytest.raises(IllegalTransition, match=f"is {before.value} and cannot become {to.value}"):
                version.move(to)
            assert version.state is before


def test_a_version_has_no_hold_or_part_before_it_was_held_or_published() -> None:
    version = CheckpointVersion(candidate(1), VersionState.DETECTED)
    with pytest.raises(IllegalTransition, match="not held"):
        version.number  # noqa: B018 - the property raises
    with pytest.raises(IllegalTransition, match="not published"):
        version.part  # noqa: B018 - the property raises

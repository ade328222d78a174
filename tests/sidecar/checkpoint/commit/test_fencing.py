from datetime import UTC, datetime

import pytest

from podferry.contract.destination.commit import FORMAT, Commit
from podferry.sidecar.checkpoint.commit.fencing import fenced_by

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def commit(sequence: int, agent_id: str, reserved: int = 0, rank: int | None = 0) -> Commit:
    name = f"s{sequence}"
    return Commit(
        FORMAT, sequence, "run", f"{name}-00", name, sequence, WHEN, (), agent_id, 1, None, rank, reserved
    )


@pytest.mark.parametrize(
    ("commits", "fencing"),
    [
        ([], None),
        ([commit(1, "other")], None),  # without a commit of its own, an agent is never fenced
        ([commit(1, "me"), commit(2, "other")], 2),
        ([commit(1, "me"), commit(2, "other"), commit(3, "third")], 3),
        ([commit(1, "me"), commit(2, "other", rank=1)], None),
        ([commit(1, "me"), commit(2, "other", rank=None)], None),
        ([commit(1, "other"), commit(2, "me")], None),
        ([commit(3, "other"), commit(5, "me", reserved=3)], 3),  # the other one took a reserved number
        ([commit(1, "other"), commit(5, "me", reserved=3)], None),
        ([commit(3, "me"), commit(5, "other", reserved=3)], None),  # the other one has not seen this commit
        ([commit(3, "me"), commit(5, "other", reserved=1)], 5),
    ],
)
def test_who_fences_this_agent(commits: list[Commit], fencing: int | None) -> None:
    found = fenced_by("me", 0, commits)
    assert (found and found.sequence) == fencing

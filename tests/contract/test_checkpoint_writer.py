from __future__ import annotations

import pytest

from podferry.contract.checkpoint_writer import is_read_only, not_the_writer
from podferry.contract.pod_owner import PodOwner

SHARED = {"checkpoints": "s3://c/$(job)"}


@pytest.mark.parametrize(
    ("follows", "settings", "expected"),
    [
        (False, SHARED, False),
        (True, SHARED, True),
        (True, {**SHARED, "lineage": "tuning"}, True),
        (True, {**SHARED, "lineage": "$$(rank)"}, True),
        (True, {**SHARED, "world": "2"}, False),
        (True, {**SHARED, "world": "1"}, False),
        (True, {**SHARED, "lineage": "$(job)-$(rank)"}, False),
        (True, {"checkpoints": "s3://c/$(rank)"}, False),
    ],
)
def test_rank_0_alone_writes_what_pods_share(follows: bool, settings: dict[str, str], expected: bool) -> None:
    owner = PodOwner("team", "job", "digits", rank=int(follows), follows=follows)
    assert is_read_only(settings, owner) is expected


def test_the_remedy_depends_on_what_the_pods_do() -> None:
    text = str(not_the_writer("step-1", 1))
    assert "step-1: this pod is rank 1" in text
    assert "set podferry.io/world to their number" in text
    assert "add $(rank) to podferry.io/lineage" in text
    assert "this pod is not" in str(not_the_writer("step-1", None))

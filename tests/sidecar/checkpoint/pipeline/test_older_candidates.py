from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podferry.contract.destination.commit import Commit
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.older_candidates import older_than
from podferry.sidecar.runtime.file_identity import FileIdentity


def candidate(name: str, changed: float) -> Candidate:
    return Candidate(name, ((f"{name}.bin", FileIdentity(1, 5, int(changed * 1e9))),))


def newest(name: str, made: float) -> Commit:
    return Commit(1, 7, "run", name, name, 5, datetime.fromtimestamp(made, UTC), (), "agent")


@pytest.mark.parametrize(
    ("present", "commit", "older"),
    [
        ([candidate("step-4", 50)], newest("step-5", 60), ["step-4"]),
        ([candidate("step-4", 70)], newest("step-5", 60), []),
        ([candidate("step-6", 50)], newest("step-5", 60), []),
        ([candidate("step-5", 50)], newest("step-5", 60), []),
        ([candidate("step-5", 50), candidate("step-4", 55)], newest("step-5", 60), []),
    ],
    ids=["older", "written later", "a later step", "of the same name", "written while it was sent"],
)
def test_what_is_older_than_the_newest_commit(
    present: list[Candidate], commit: Commit, older: list[str]
) -> None:
    assert [one.name for one in older_than(commit, present)] == older

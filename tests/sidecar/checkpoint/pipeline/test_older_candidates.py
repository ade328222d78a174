from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podferry.contract.destination.commit import Commit
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion, VersionState
from podferry.sidecar.checkpoint.pipeline.older_candidates import is_late, older_than
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


def version(name: str, changed: float, *, rewritten: bool = False) -> CheckpointVersion:
    return CheckpointVersion(candidate(name, changed), VersionState.COMMITTED, rewritten=rewritten)


@pytest.mark.parametrize(
    ("found", "other", "late"),
    [
        (version("archived-5", 50), version("step-6", 60), True),
        (version("best", 50), version("step-6", 60), True),
        (version("best", 60), version("step-6", 60), False),
        (version("step-7", 50), version("step-6", 60), False),
        (version("step-6", 50), version("step-6", 60), False),
        (version("archived-5", 50), version("loss-6", 60), True),
        (version("mapped", 50, rewritten=True), version("step-6", 60), False),
    ],
)
def test_an_older_save_under_another_name_is_late(
    found: CheckpointVersion, other: CheckpointVersion, late: bool
) -> None:
    assert is_late(found, [found, other]) is late


def test_a_plot_makes_no_checkpoint_late() -> None:
    plot = Candidate("plot-6", (("plot-6.png", FileIdentity(1, 5, 60 * 10**9)),))
    other = CheckpointVersion(plot, VersionState.COMMITTED)
    assert not is_late(version("step-5", 50), [other])

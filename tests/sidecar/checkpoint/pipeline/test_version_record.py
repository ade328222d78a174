"""What a restarted worker knows of checkpoints, and what an earlier run left."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podferry.contract.destination.commit import Commit, Doubt, DoubtKind
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion, VersionState
from podferry.sidecar.checkpoint.pipeline.doubt_ledger import DoubtLedger
from podferry.sidecar.checkpoint.pipeline.version_record import older_than, read_versions, write_versions
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.journal import CheckpointRecord, DoubtfulCommit

DOUBT = Doubt(DoubtKind.UNPROVEN, "another file may follow")


def candidate(name: str, changed: float = 1.0) -> Candidate:
    return Candidate(name, ((f"{name}.bin", FileIdentity(1, 5, int(changed * 1e9))),))


def test_versions_survive_a_restart() -> None:
    record = CheckpointRecord(fingerprints={"kept": {"kept.bin": "0f"}, "gone": {"gone.bin": "0e"}})
    versions = [
        CheckpointVersion(candidate("old"), VersionState.IGNORED),
        CheckpointVersion(candidate("kept"), VersionState.RESTORED),
        CheckpointVersion(candidate("new"), VersionState.DETECTED),
    ]
    write_versions(record, versions)
    found = list(read_versions(record, [], DoubtLedger(record, None)))
    assert [(one.name, one.state) for one in found] == [
        ("old", VersionState.IGNORED),
        ("kept", VersionState.RESTORED),
    ]
    assert record.fingerprints == {"kept": {"kept.bin": "0f"}}


def test_doubts_survive_a_restart() -> None:
    one = candidate("epoch-1")
    doubtful = DoubtfulCommit(1, one.name, one.name, one.files, (DOUBT,))
    record = CheckpointRecord(settled={one.name: one.files}, doubtful=[doubtful])
    (found,) = read_versions(record, [], DoubtLedger(record, None))
    assert found.candidate.doubts == (DOUBT,)


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

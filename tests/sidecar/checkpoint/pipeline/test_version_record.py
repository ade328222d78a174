"""What a restarted worker knows of checkpoints."""

from __future__ import annotations

from podferry.contract.destination.commit import Doubt, DoubtKind
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion, VersionState
from podferry.sidecar.checkpoint.pipeline.doubt_ledger import DoubtLedger
from podferry.sidecar.checkpoint.pipeline.version_record import read_versions, write_versions
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.journal import CheckpointRecord, DoubtfulCommit

DOUBT = Doubt(DoubtKind.UNPROVEN, "another file may follow")


def candidate(name: str) -> Candidate:
    return Candidate(name, ((f"{name}.bin", FileIdentity(1, 5, 1)),))


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

"""The list of durable checkpoints stays bounded, counts all, and keeps what is still local."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from podferry.contract.destination.commit import Commit, CommittedFile, Doubt, DoubtKind
from podferry.contract.status import CheckpointStatus, newest_durable
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion, VersionState
from podferry.sidecar.checkpoint.pipeline.durable_list import DURABLE_SHOWN, DurableList
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.journal import CheckpointRecord

HELD_AT, NOW = 70.0, 100.0
DOUBT = Doubt(DoubtKind.UNPROVEN, "another file may follow")


def add(
    durable: DurableList,
    sequence: int,
    name: str,
    *doubts: Doubt,
    local: set[str] = frozenset(),
    suffix: str = ".bin",
) -> float:
    files = ((f"{name}{suffix}", FileIdentity(1, 5, 1)),)
    candidate = Candidate(name, files, doubts)
    hold = HeldCheckpoint(candidate, files, Path(f"/pins/{sequence}/files"), HELD_AT, Path("/note"))
    version = CheckpointVersion(candidate, VersionState.HELD, hold)
    listed = (CommittedFile(f"{name}{suffix}", f"{name}{suffix}", 5, "0" * 32),)
    made = datetime.now(UTC)
    commit = Commit(2 if doubts else 1, sequence, "run", name, name, None, made, listed, "agent")
    return durable.add(version, commit, local)


def listed() -> tuple[DurableList, CheckpointStatus, CheckpointRecord]:
    record, status = CheckpointRecord(), CheckpointStatus("s3://b/ckpt", "/checkpoints", "run")
    return DurableList(record, status, lambda: NOW), status, record


def test_it_is_bounded_and_counts_all() -> None:
    durable, status, record = listed()
    for sequence in range(1, DURABLE_SHOWN + 11):
        add(durable, sequence, f"epoch-{sequence}", local={"epoch-3"})
    sequences = [one.sequence for one in durable]
    assert sequences == [3, *range(11, DURABLE_SHOWN + 11)]
    assert [one.sequence for one in status.durable] == sequences[1:]
    assert status.durable_count == record.durable_count == DURABLE_SHOWN + 10


def test_one_that_is_committed_again_counts_once() -> None:
    durable, status, _ = listed()
    assert [add(durable, 1, "last") for _ in range(2)] == [NOW - HELD_AT, NOW - HELD_AT]
    assert status.durable_count == len(list(durable)) == 1


def test_a_confirmed_one_has_no_doubts() -> None:
    durable, status, _ = listed()
    for sequence in (1, 2):
        add(durable, sequence, f"epoch-{sequence}", DOUBT)
    durable.confirm(1)
    assert [one.doubts for one in status.durable] == [(), (DOUBT.reason,)]


def test_what_an_earlier_worker_committed_is_shown() -> None:
    durable, _, record = listed()
    add(durable, 1, "last")
    status = CheckpointStatus("s3://b/ckpt", "/checkpoints", "run")
    DurableList(record, status, lambda: NOW)
    assert [one.name for one in status.durable] == ["last"]
    assert status.durable_count == 1


def test_the_newest_state_stays_however_many_metrics_follow() -> None:
    durable, status, _ = listed()
    add(durable, 1, "epoch-1")
    for sequence in range(2, DURABLE_SHOWN + 11):
        add(durable, sequence, "metrics", suffix=".json")
    assert len(status.durable) == DURABLE_SHOWN + 1
    last = newest_durable(status.durable)
    assert last is not None
    assert last.name == "epoch-1"

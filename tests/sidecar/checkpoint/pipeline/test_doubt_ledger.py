"""Doubtful commits, until they are confirmed."""

from __future__ import annotations

from datetime import UTC, datetime

from podferry.contract.destination.commit import Commit, Confidence, Doubt, DoubtKind
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.doubt_ledger import MAX_DOUBTFUL, DoubtLedger
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.journal import CheckpointRecord

DOUBT = Doubt(DoubtKind.UNPROVEN, "no end")


def version(number, *, sure=False):
    files = ((f"s-{number}/a.raw", FileIdentity(number, 1, number)),)
    return Candidate(f"s-{number}", files, () if sure else (DOUBT,))


def commit(number, *doubts):
    confidence = Confidence.DOUBTFUL if doubts else Confidence.SURE
    created = datetime(2026, 1, 1, tzinfo=UTC)
    return Commit(
        1, number, "fit", f"s-{number}-00", f"s-{number}", number, created, (), "a" * 32,
        confidence=confidence, doubts=doubts,
    )  # fmt: skip


def test_a_doubtful_commit_is_confirmed_once_its_version_is_proven():
    ledger = DoubtLedger(CheckpointRecord(), None)
    ledger.add(version(1), commit(1, DOUBT))
    ledger.add(version(2, sure=True), commit(2))
    assert ledger.doubts("s-1", version(1).files) == (DOUBT,)
    assert not ledger.settle([version(2)])
    assert ledger.settle([version(1)])
    (found,) = ledger.confirming()
    assert (found.sequence, found.checkpoint) == (1, "s-1-00")
    assert ledger.doubts("s-1", version(1).files) == ()
    ledger.confirmed(found)
    assert ledger.confirming() == []


def test_a_version_that_was_proven_while_it_was_sent_is_confirmed_at_once():
    ledger = DoubtLedger(CheckpointRecord(), None)
    ledger.add(version(1, sure=True), commit(1, DOUBT))
    assert [one.sequence for one in ledger.confirming()] == [1]


def test_a_rank_confirms_its_own_part_alone():
    ledger = DoubtLedger(CheckpointRecord(), 1)
    ledger.add(version(1), commit(1, Doubt(DoubtKind.UNPROVEN, "no end", 0)))
    assert not ledger.settle([version(1)])
    ledger.add(version(2), commit(2, Doubt(DoubtKind.UNPROVEN, "no end", 1)))
    assert ledger.settle([version(2)])


def test_a_moved_pointer_makes_no_other_version():
    ledger = DoubtLedger(CheckpointRecord(), None)
    pointed = Candidate("s-1", (*version(1).files, ("latest", FileIdentity(9, 3, 9))), (DOUBT,))
    ledger.add(pointed, commit(1, DOUBT))
    assert ledger.settle([version(1)])


def test_the_record_is_bounded():
    record = CheckpointRecord()
    ledger = DoubtLedger(record, None)
    for number in range(MAX_DOUBTFUL + 5):
        ledger.add(version(number), commit(number, DOUBT))
    assert [one.sequence for one in record.doubtful] == list(range(5, MAX_DOUBTFUL + 5))

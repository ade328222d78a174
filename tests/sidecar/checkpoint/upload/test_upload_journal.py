from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.checkpoint.upload.upload_journal import (
    FileSent,
    PartSent,
    PlannedFile,
    UploadJournals,
    UploadPlan,
    UploadStarted,
)
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.storage.multipart import UploadedPart

reusing = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
IDENTITY = FileIdentity(7, 2500, 1)
FILES = tuple(PlannedFile(name, IDENTITY, 1000, name * 32, (name,) * 3) for name in "ab")
PLAN = UploadPlan("s-1", FILES)
EVENTS = (
    UploadStarted("a", "first"),
    PartSent("a", UploadedPart(1, "x", 1, 1000)),
    UploadStarted("a", "second\nline"),
    PartSent("a", UploadedPart(3, "y", 2**64 - 1, 500)),
    UploadStarted("b", "third"),
    PartSent("a", UploadedPart(1, "z", 3, 1000)),
    PartSent("b", UploadedPart(2, "u", 4, 1000)),
    FileSent("a"),
    PartSent("b", UploadedPart(1, "v", 5, 1000)),
)


@pytest.fixture
def ledgers(tmp_path):
    return UploadJournals(tmp_path / "uploads")


def state(ledger):
    """All that a restarted worker goes by."""
    return ledger.uploads, ledger.done, [ledger.receipts(name) for name in "ab"]


def pinned(*held):
    return HeldCheckpoint(Candidate("s", held), held, Path("/pins/3/files"), 1.0, Path("/notes/3.json"))


@reusing
@given(st.data())
def test_of_a_ledger_that_was_torn_anywhere_all_that_is_whole_counts(ledgers, tmp_path, data):
    ledger = ledgers.new(3, PLAN)
    path = tmp_path / "uploads/3.jsonl"
    states, ends = [state(ledgers.find(3))], [path.stat().st_size]
    for event in EVENTS:
        ledger.note(event)
        states.append(state(ledgers.find(3)))
        ends.append(path.stat().st_size)
    assert states[-1] == state(ledger)
    text = path.read_bytes()
    cut = data.draw(st.integers(0, len(text)))
    path.write_bytes(text[:cut])
    found = ledgers.find(3)
    if cut < ends[0]:
        assert found is None
        assert not path.exists()
        return
    count = sum(end <= cut for end in ends) - 1
    assert state(found) == states[count]
    for event in EVENTS[count:]:
        found.note(event)
    assert path.read_bytes() == text


def test_a_damaged_line_ends_what_is_believed(ledgers, tmp_path):
    ledger = ledgers.new(3, PLAN)
    for event in EVENTS[:2]:
        ledger.note(event)
    before = state(ledgers.find(3))
    path = tmp_path / "uploads/3.jsonl"
    with path.open("ab") as file:
        file.write(b"{}\n")
    ledger.note(EVENTS[2])
    assert state(ledgers.find(3)) == before


def test_what_is_missing_is_what_the_upload_that_counts_does_not_have(ledgers):
    ledger = ledgers.new(3, PLAN)
    assert ledger.missing(FILES[0]) == [1, 2, 3]
    for event in EVENTS[:4]:
        ledger.note(event)
    assert ledger.missing(FILES[0]) == [1, 2]
    ledger.lost("a")
    assert (ledger.missing(FILES[0]), ledger.uploads) == ([1, 2, 3], {})


def test_a_file_that_is_begun_again_is_not_done(ledgers):
    ledger = ledgers.new(3, PLAN)
    for event in (FileSent("a"), UploadStarted("a", "again")):
        ledger.note(event)
    assert (ledgers.find(3).done, ledgers.find(3).uploads) == (set(), {"a": "again"})


@pytest.mark.parametrize(
    ("held", "fits"),
    [
        ((("a", IDENTITY), ("b", IDENTITY)), True),
        ((("b", IDENTITY), ("a", IDENTITY)), True),
        ((("a", IDENTITY),), False),
        ((("a", IDENTITY), ("b", IDENTITY._replace(mtime_ns=2))), False),
        ((("a", IDENTITY), ("b", IDENTITY), ("c", IDENTITY)), False),
    ],
)
def test_a_plan_fits_the_pin_that_it_was_made_for(held, fits):
    assert PLAN.fits(pinned(*held)) is fits
    assert not UploadPlan("s-1", FILES, format=99).fits(pinned(*held))


def test_a_ledger_that_cannot_be_written_costs_only_itself(ledgers, tmp_path):
    ledger = ledgers.new(3, PLAN)
    path = tmp_path / "uploads/3.jsonl"
    kept = path.read_bytes()
    path.unlink()
    path.mkdir()
    with capture_logs() as logs:
        for event in EVENTS:
            ledger.note(event)
    assert [line["log_level"] for line in logs] == ["warning"]
    assert ledger.done == {"a"}
    path.rmdir()
    path.write_bytes(kept)
    ledger.note(EVENTS[0])
    assert path.read_bytes() == kept, "after a line that may be torn nothing is appended"


def test_a_ledger_that_cannot_be_read_is_none(ledgers, tmp_path):
    for text in (b"", b"\n", b"[]\n", b"\xff\n", b'{"type":"done","file":"a"}\n'):
        ledgers.new(3, PLAN)
        (tmp_path / "uploads/3.jsonl").write_bytes(text)
        assert ledgers.find(3) is None
        assert ledgers.numbers() == []


def test_ledgers_are_known_by_the_numbers_of_their_pins(ledgers, tmp_path):
    assert ledgers.numbers() == []
    for number in (10, 9):
        ledgers.new(number, PLAN)
    (tmp_path / "uploads/x.jsonl").touch()
    assert ledgers.numbers() == [9, 10]
    ledgers.find(9).remove()
    assert (ledgers.numbers(), ledgers.find(9)) == ([10], None)


def test_a_new_plan_replaces_what_lay_there(ledgers):
    ledgers.new(3, PLAN).note(EVENTS[0])
    ledgers.new(3, UploadPlan("s-2", FILES))
    assert (ledgers.find(3).plan.folder, ledgers.find(3).uploads) == ("s-2", {})

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
def journals(tmp_path):
    return UploadJournals(tmp_path / "uploads")


def state(journal):
    """All that a restarted worker uses."""
    return journal.uploads, journal.sent, [journal.receipts(name) for name in "ab"]


def held_files(*held):
    return HeldCheckpoint(Candidate("s", held), held, Path("/pins/3/files"), 1.0, Path("/notes/3.json"))


@reusing
@given(st.data())
def test_all_complete_lines_of_a_torn_journal_count(journals, tmp_path, data):
    journal = journals.create(3, PLAN)
    path = tmp_path / "uploads/3.jsonl"
    states, ends = [state(journals.load(3))], [path.stat().st_size]
    for event in EVENTS:
        journal.record(event)
        states.append(state(journals.load(3)))
        ends.append(path.stat().st_size)
    assert states[-1] == state(journal)
    text = path.read_bytes()
    cut = data.draw(st.integers(0, len(text)))
    path.write_bytes(text[:cut])
    found = journals.load(3)
    if cut < ends[0]:
        assert found is None
        assert not path.exists()
        return
    count = sum(end <= cut for end in ends) - 1
    assert state(found) == states[count]
    for event in EVENTS[count:]:
        found.record(event)
    assert path.read_bytes() == text


def test_nothing_after_a_damaged_line_counts(journals, tmp_path):
    journal = journals.create(3, PLAN)
    for event in EVENTS[:2]:
        journal.record(event)
    before = state(journals.load(3))
    path = tmp_path / "uploads/3.jsonl"
    with path.open("ab") as file:
        file.write(b"{}\n")
    journal.record(EVENTS[2])
    assert state(journals.load(3)) == before


def test_missing_parts_are_those_of_the_newest_upload(journals):
    journal = journals.create(3, PLAN)
    assert journal.missing_parts(FILES[0]) == [1, 2, 3]
    for event in EVENTS[:4]:
        journal.record(event)
    assert journal.missing_parts(FILES[0]) == [1, 2]
    journal.forget("a")
    assert (journal.missing_parts(FILES[0]), journal.uploads) == ([1, 2, 3], {})


def test_a_file_whose_upload_starts_over_is_not_sent(journals):
    journal = journals.create(3, PLAN)
    for event in (FileSent("a"), UploadStarted("a", "again")):
        journal.record(event)
    assert (journals.load(3).sent, journals.load(3).uploads) == (set(), {"a": "again"})


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
def test_a_plan_matches_only_its_own_hold(held, fits):
    assert PLAN.matches(held_files(*held)) is fits
    assert not UploadPlan("s-1", FILES, format=99).matches(held_files(*held))


def test_a_journal_that_cannot_be_written_costs_only_itself(journals, tmp_path):
    journal = journals.create(3, PLAN)
    path = tmp_path / "uploads/3.jsonl"
    kept = path.read_bytes()
    path.unlink()
    path.mkdir()
    with capture_logs() as logs:
        for event in EVENTS:
            journal.record(event)
    assert [line["log_level"] for line in logs] == ["warning"]
    assert journal.sent == {"a"}
    path.rmdir()
    path.write_bytes(kept)
    journal.record(EVENTS[0])
    assert path.read_bytes() == kept, "after a line that may be torn nothing is appended"


def test_a_journal_that_cannot_be_read_is_none(journals, tmp_path):
    for text in (b"", b"\n", b"[]\n", b"\xff\n", b'{"type":"done","file":"a"}\n'):
        journals.create(3, PLAN)
        (tmp_path / "uploads/3.jsonl").write_bytes(text)
        assert journals.load(3) is None
        assert journals.numbers() == []


def test_journals_are_found_by_the_numbers_of_their_holds(journals, tmp_path):
    assert journals.numbers() == []
    for number in (10, 9):
        journals.create(number, PLAN)
    (tmp_path / "uploads/x.jsonl").touch()
    assert journals.numbers() == [9, 10]
    journals.load(9).remove()
    assert (journals.numbers(), journals.load(9)) == ([10], None)


def test_a_new_plan_replaces_an_earlier_journal(journals):
    journals.create(3, PLAN).record(EVENTS[0])
    journals.create(3, UploadPlan("s-2", FILES))
    assert (journals.load(3).plan.folder, journals.load(3).uploads) == ("s-2", {})

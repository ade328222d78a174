from datetime import UTC, datetime
from pathlib import Path

import pytest

from podferry.contract.destination.agent_notes import AgentNote, DrainPhase, decode_note, note_name
from podferry.contract.errors import Corrupt, FormatTooNew, Problem
from podferry.contract.versioned_json import encode_document

GOLDEN = Path(__file__).parents[1] / "golden" / "note-v1.json"
NOTE = AgentNote(
    format=1,
    agent_id="0" * 32,
    phase=DrainPhase.DRAINING,
    at=datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC),
    seconds=25.5,
    pending=("step-200",),
    problems=(Problem("the store did not respond", "503", "Try again"),),
    rank=2,
    run="run-1",
)


def test_the_first_format_stays_readable() -> None:
    data = GOLDEN.read_bytes()
    assert decode_note(data, "golden") == NOTE
    assert encode_document(NOTE) == data


def test_a_note_needs_only_what_every_agent_knows() -> None:
    found = decode_note(b'{"format":1,"writer":"w","phase":"ended","at":"2026-03-01T12:30:05Z"}', "x")
    assert (found.agent_id, found.phase, found.seconds, found.pending) == ("w", DrainPhase.ENDED, 0.0, ())


def test_a_later_format_is_refused_by_name() -> None:
    with pytest.raises(FormatTooNew, match="format 2"):
        decode_note(b'{"format": 2}', "x")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"draining"', b'"sleeping"'),
        (b'"writer"', b'"agent_id"'),
        (b"12:30:05Z", b"25:30:05Z"),
        (b"25.5", b'"soon"'),
    ],
)
def test_another_document_is_corrupt(old: bytes, new: bytes) -> None:
    data = GOLDEN.read_bytes()
    assert old in data
    with pytest.raises(Corrupt):
        decode_note(data.replace(old, new), "x")


def test_notes_are_next_to_the_commits() -> None:
    assert note_name("a1") == ".podferry/notes/a1.json"

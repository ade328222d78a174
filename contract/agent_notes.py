"""What an agent leaves at the destination about its own end. Format 1.

Commits are the truth; a note helps the next agent, which waits for one that is still draining, and people,
who read in it what did not become durable.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from podferry.contract.commit import PRIVATE
from podferry.contract.errors import Problem
from podferry.contract.versioned_json import decode_document

FORMAT = 1
NOTES = f"{PRIVATE}/notes"


class DrainPhase(StrEnum):
    """How an agent's end goes."""

    DRAINING = "draining"
    ENDED = "ended"


class AgentNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent's end.

    Attributes:
        format: Version of this document.
        writer: The agent, as its commits name it.
        phase: Whether it still drains.
        at: When this was written, by the agent's clock, with its zone. For people.
        seconds: How long the drain may still take from then on.
        pending: Checkpoints that are not durable.
        problems: Why not.
        rank: The agent's number in its training, None where nothing says.
        run: KFP's run id, None outside KFP.
    """

    format: int
    writer: str
    phase: DrainPhase
    at: datetime
    seconds: float = 0.0
    pending: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    rank: int | None = None
    run: str | None = None


def note_name(writer: str) -> str:
    """Where an agent's note lies, relative to the lineage."""
    return f"{NOTES}/{writer}.json"


def encode_note(note: AgentNote) -> bytes:
    """The note as indented JSON: people read it in a bucket's browser."""
    return msgspec.json.format(msgspec.json.encode(note), indent=1)


def decode_note(data: bytes, source: str) -> AgentNote:
    """Read a note.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: No note.
    """
    return decode_document(data, AgentNote, FORMAT, source)

"""Notes that an agent writes to the destination about its own shutdown. Format 1.

Commits are the truth. A note helps the next agent, which waits for one that is still draining, and people,
who see in it what did not become durable.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.errors import Problem
from podferry.contract.versioned_json import document_decoder

FORMAT = 1
NOTES = f"{PRIVATE}/notes"


class DrainPhase(StrEnum):
    """State of an agent's shutdown."""

    DRAINING = "draining"
    ENDED = "ended"


class AgentNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """The shutdown of one agent.

    Attributes:
        format: Version of this document.
        agent_id: The agent's id, as in its commits.
        phase: Whether it is still draining.
        at: When this was written, by the agent's clock, with time zone. For people.
        seconds: How long the drain may still take from then.
        pending: Checkpoints that are not durable.
        problems: Why they are not.
        rank: The pod's number in its training run, or None if unknown.
        run: KFP's run id, or None outside KFP.
    """

    format: int
    agent_id: str = msgspec.field(name="writer")
    phase: DrainPhase
    at: datetime
    seconds: float = 0.0
    pending: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    rank: int | None = None
    run: str | None = None


def note_name(agent_id: str) -> str:
    """The name of an agent's note, relative to the lineage."""
    return f"{NOTES}/{agent_id}.json"


decode_note = document_decoder(AgentNote, FORMAT)

"""Handover between agents of one lineage: each leaves a note when it ends, and the next one waits for it.

A Job's new pod starts while the old one still drains, and should resume from what the old one makes durable.
So it waits as long as the old agent's note says that its drain may take, and no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
import structlog

from podferry.contract.destination.agent_notes import (
    FORMAT,
    NOTES,
    AgentNote,
    DrainPhase,
    decode_note,
    note_name,
)
from podferry.contract.errors import FerryError, Problem
from podferry.contract.versioned_json import encode_document
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.runtime.concurrency import for_each_limited

log = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
"""Seconds between two reads of a draining agent's note."""
REPORT_SECONDS = 5.0
"""Seconds in which an agent whose time is used up writes its last note: then Kubernetes kills it."""
MAX_HANDOVER_SECONDS = 600.0
"""Seconds to wait at most, whatever a note says."""
CONCURRENT_READS = 16
"""Notes that are read at a time: one for each earlier agent."""


class Handover:
    """The notes of one lineage.

    Args:
        store: The lineage.
        identity: This agent: it writes notes, and does not wait for itself.
        now: The agent's clock, with its zone.
    """

    def __init__(self, store: LineageStore, identity: AgentIdentity, now: Callable[[], datetime]) -> None:
        self._store, self._identity, self._now = store, identity, now

    async def write_note(
        self,
        phase: DrainPhase,
        seconds: float = 0.0,
        pending: Sequence[str] = (),
        problems: Sequence[Problem] = (),
    ) -> None:
        """Write this agent's note. A failure is only logged."""
        identity = self._identity
        note = AgentNote(
            format=FORMAT,
            agent_id=identity.agent_id,
            phase=phase,
            at=self._now(),
            seconds=seconds,
            pending=tuple(pending),
            problems=tuple(problems),
            rank=identity.rank,
            run=identity.run,
        )
        try:
            await self._store.write(note_name(identity.agent_id), encode_document(note))
        except FerryError as error:
            log.warning("the agent's final note was not written", reason=str(error))

    async def wait(self) -> None:
        """Wait until no other agent of this lineage drains, for each as long as its note allows.

        Logs what an ended agent could not make durable. Skips unreadable notes; raises the store's errors.
        """
        waited = 0.0
        while longest := _longest_drain(notes := await self._notes_of_others()):
            if waited >= longest:
                log.warning("a previous agent did not finish draining in time", waited=round(waited, 1))
                await self._mark_ended(notes)
                break
            if not waited:
                log.info("waiting for a previous agent to drain", at_most=round(longest, 1))
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        for note in (note for note in notes if note.pending):
            details = {"checkpoints": note.pending, "reasons": [str(problem) for problem in note.problems]}
            event = "a previous agent left checkpoints that are not durable"
            log.info(event, agent_id=note.agent_id, **details)

    async def _mark_ended(self, notes: Sequence[AgentNote]) -> None:
        """Mark the agents that still drain as ended, so that no other agent waits for them again."""
        for note in (note for note in notes if note.phase is DrainPhase.DRAINING):
            ended = msgspec.structs.replace(note, phase=DrainPhase.ENDED, seconds=0.0)
            await self._store.write(note_name(note.agent_id), encode_document(ended))

    async def _notes_of_others(self) -> list[AgentNote]:
        own, notes = note_name(self._identity.agent_id), dict[str, AgentNote]()
        names = [f"{NOTES}/{name}" for name in await self._store.children(NOTES) if not name.endswith("/")]

        async def read(name: str) -> None:
            try:
                notes[name] = await self._store.load(name, decode_note)
            except FerryError as error:
                log.warning("skipping a note that cannot be read", reason=str(error))

        others = [name for name in names if name != own]
        await for_each_limited(others, read, CONCURRENT_READS)
        return [notes[name] for name in others if name in notes]


def _longest_drain(notes: Sequence[AgentNote]) -> float:
    """Seconds until all agents have drained and said so, by their notes; 0 if none drains."""
    draining = [note.seconds + REPORT_SECONDS for note in notes if note.phase is DrainPhase.DRAINING]
    return min(max(draining, default=0.0), MAX_HANDOVER_SECONDS)

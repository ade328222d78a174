"""From one agent of a lineage to the next: a note about the end, and the wait for it.

A Job's new pod is made while the old one still drains. What that one makes durable is what the new one should
resume from, so it waits for as long as the old one says that it may take, and no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
import structlog

from podferry.contract.agent_notes import (
    FORMAT,
    NOTES,
    AgentNote,
    DrainPhase,
    decode_note,
    encode_note,
    note_name,
)
from podferry.contract.errors import FerryError, Problem
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore

log = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
"""Seconds between two looks at the note of an agent that drains."""
MAX_HANDOVER_SECONDS = 600.0
"""Seconds that are waited at most, whatever a note says."""


class Handover:
    """The notes of one lineage.

    Args:
        store: The lineage's.
        author: Who writes and is not waited for.
        now: The agent's clock, with its zone.
    """

    def __init__(self, store: LineageStore, author: AgentIdentity, now: Callable[[], datetime]) -> None:
        self._store, self._author, self._now = store, author, now

    async def tell(
        self,
        phase: DrainPhase,
        seconds: float = 0.0,
        pending: Sequence[str] = (),
        problems: Sequence[Problem] = (),
    ) -> None:
        """Leave a note about the end. A failure is logged and passed over."""
        author = self._author
        note = AgentNote(
            format=FORMAT,
            writer=author.writer,
            phase=phase,
            at=self._now(),
            seconds=seconds,
            pending=tuple(pending),
            problems=tuple(problems),
            rank=author.rank,
            run=author.run,
        )
        try:
            await self._store.write(note_name(author.writer), encode_note(note))
        except FerryError as error:
            log.warning("the note about the end could not be left", reason=str(error))

    async def wait(self) -> None:
        """Wait until no other agent of this lineage drains, each as long as its note allows.

        What an agent that has ended left behind is logged, by name.

        Raises:
            FerryError: The store's; a note that cannot be read is passed over.
        """
        waited = 0.0
        while longest := _longest(found := await self._others()):
            if waited >= longest:
                log.warning("an agent before this one did not end in time", waited=round(waited, 1))
                await self._conclude(found)
                break
            if not waited:
                log.info("waiting for the agent before this one to drain", at_most=round(longest, 1))
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        for note in (note for note in found if note.pending):
            reasons = [str(problem) for problem in note.problems]
            log.info(
                "an earlier agent left behind", writer=note.writer, checkpoints=note.pending, reasons=reasons
            )

    async def _conclude(self, found: Sequence[AgentNote]) -> None:
        """Note that agents which say that they drain have ended: nobody else waits for them again."""
        for note in (note for note in found if note.phase is DrainPhase.DRAINING):
            ended = msgspec.structs.replace(note, phase=DrainPhase.ENDED, seconds=0.0)
            await self._store.write(note_name(note.writer), encode_note(ended))

    async def _others(self) -> list[AgentNote]:
        names = await self._store.children(NOTES)
        own = note_name(self._author.writer).rpartition("/")[2]
        found = [await self._read(name) for name in names if name != own and not name.endswith("/")]
        return [note for note in found if note is not None]

    async def _read(self, name: str) -> AgentNote | None:
        try:
            return await self._store.load(f"{NOTES}/{name}", decode_note)
        except FerryError as error:
            log.warning("passing over a note", reason=str(error))
            return None


def _longest(notes: Sequence[AgentNote]) -> float:
    """Seconds that the agents which still drain may take, 0 where none does."""
    draining = [note.seconds for note in notes if note.phase is DrainPhase.DRAINING]
    return min(max(draining, default=0.0), MAX_HANDOVER_SECONDS)

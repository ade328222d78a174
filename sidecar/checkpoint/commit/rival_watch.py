"""Notices another agent of the same lineage: at the start, and within seconds while training runs.

An agent examines the commits of others only before its own next one. Between two checkpoints hours may pass
in which training is useless, so it also looks at two small objects from time to time: who has started last,
and whether somebody has committed.

Not for pods that write a checkpoint together: each of them watches the members of its rank.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import msgspec

from podferry.contract.destination.agent_notes import decode_note, note_name
from podferry.contract.destination.commit import LATEST
from podferry.contract.errors import FerryError, NotFound
from podferry.sidecar.checkpoint.commit.agent_identity import (
    ANNOUNCEMENT,
    AgentIdentity,
    Announcement,
    decode_announcement,
)
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore


class RivalWatch:
    """Looks for another agent that writes the lineage as the same rank."""

    def __init__(self, committer: Committer) -> None:
        self._committer, self._store = committer, committer.store
        self._latest: tuple[int, str] | None = None

    async def look(self) -> Announcement | None:
        """The agent that has started last, if it is another one that has not ended; None otherwise.

        Raises:
            Fenced: Another agent has taken over.
            FerryError: The store's: which agent started last is unknown.
        """
        latest = await self._version_of_latest()
        if latest != self._latest:
            await self._committer.examine()
            self._latest = latest
        announced = await self._store.find(ANNOUNCEMENT, decode_announcement)
        return await rival_of(self._store, self._committer.identity, announced)

    async def _version_of_latest(self) -> tuple[int, str] | None:
        """What changes with each commit."""
        try:
            found = await self._store.stat(LATEST)
        except NotFound:
            return None
        return found.size, found.tag


async def announce(
    store: LineageStore, identity: AgentIdentity, now: Callable[[], datetime]
) -> Announcement | None:
    """Announce an agent; returns the one announced before if it has not ended: it was killed, or still runs.

    Shows before training starts whether the destination accepts writes: raises `AccessDenied` or
    `BucketNotFound` if it does not.
    """
    before, since = await last_announced(store), now().isoformat(timespec="seconds")
    own = Announcement(identity.agent_id, since, identity.run, identity.rank, identity.origin)
    _, rival = await asyncio.gather(
        store.write(ANNOUNCEMENT, msgspec.json.encode(own)), rival_of(store, identity, before)
    )
    return rival


async def last_announced(store: LineageStore) -> Announcement | None:
    """The agent that has started last, None if that is unknown."""
    try:
        return await store.find(ANNOUNCEMENT, decode_announcement)
    except FerryError:
        return None


async def rival_of(
    store: LineageStore, identity: AgentIdentity, announced: Announcement | None
) -> Announcement | None:
    """The announced agent, unless it is this one, another rank, or has left a note: it drains or ended."""
    if announced is None or announced.agent_id == identity.agent_id or announced.rank != identity.rank:
        return None
    try:
        note = await store.find(note_name(announced.agent_id), decode_note)
    except FerryError:
        return announced
    return announced if note is None else None

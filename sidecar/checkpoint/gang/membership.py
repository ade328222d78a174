"""Which agents write a lineage together: announces this one and watches the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec
import structlog

from podferry.contract.destination.rank_parts import (
    FORMAT,
    RANKS,
    GangMember,
    MembershipView,
    decode_member,
    epoch_of,
    member_name,
    member_of,
)
from podferry.contract.errors import Corrupt, Fenced, NotFound
from podferry.contract.versioned_json import encode_checksummed
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_log import CommitLog
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore

log = structlog.get_logger(__name__)

MAX_VIEWS = 16
"""Epochs that are remembered: files wait minutes for their upload, pods start within seconds."""
CLOCK_MARGIN_SECONDS = 60.0
"""Much longer than the time between two refreshes, after the last of which a clock may have been set back."""


def epoch_at(views: Iterable[MembershipView], time: float) -> str:
    """The epoch that had been seen at a time; empty if none.

    After a clock was set back, older views count until the clock has passed them. That refuses parts, and
    joins none that do not belong together.
    """
    epoch = ""
    for view in views:
        if view.time > time:
            break
        epoch = view.epoch
    return epoch


def takes_over(rival: GangMember, rival_id: str, rank: int, agent_id: str) -> bool:
    """Whether a rival of the same rank came after `agent_id`, or at the same moment and wins by its id.

    `agent_id` must not have found the rival when it came.
    """
    before = {(found[0], found[2]) for found in map(member_of, rival.before) if found}
    return (rank, agent_id) in before or rival_id > agent_id


class Membership:
    """One agent among those of its lineage.

    Attributes:
        name: This agent's own name below `RANKS`; empty before `announce`.
        own: This agent's own document.
    """

    def __init__(
        self, store: LineageStore, identity: AgentIdentity, commits: CommitLog, clock: Callable[[], float]
    ) -> None:
        assert identity.rank is not None  # noqa: S101 - see GangCoordinator
        self.name = ""
        self.own = GangMember(FORMAT, identity.agent_id, datetime.fromtimestamp(0, UTC), 0)
        self._store, self._commits, self._clock = store, commits, clock
        self._rank, self._agent_id = identity.rank, identity.agent_id
        self._latest = 0.0
        self._yielding: set[str] = set()
        self._fenced: Fenced | None = None
        self._lock = asyncio.Lock()

    async def names(self) -> list[str]:
        """The names of all members."""
        return [name for name in await self._store.children(RANKS) if member_of(name) is not None]

    async def announce(self) -> None:
        """Write this life's name, or find it if only the worker has restarted."""
        names = await self.names()
        members = filter(None, map(member_of, names))
        lives = [life for rank, life, agent_id in members if (rank, agent_id) == (self._rank, self._agent_id)]
        if lives:
            self.name = member_name(self._rank, self._agent_id, max(lives))
            self.own = await self._read(self.name)
        else:
            await self._commits.refresh()
            await self._begin(1, tuple(names))
        await self.refresh()

    async def new_epoch(self) -> None:
        """Take a new name, for a trainer that has restarted; the old name is deleted after that."""
        old, found = self.name, member_of(self.name)
        assert found is not None  # noqa: S101 - it was made by `member_name`
        await self._commits.refresh(self._commits.last)
        await self._begin(found[1] + 1, self.own.before)
        await self._store.delete([f"{RANKS}/{old}"])
        await self.refresh()

    async def refresh(self) -> str:
        """List the members; returns the current epoch. Call it every few seconds.

        Raises:
            Fenced: A later agent of this rank has taken over.
        """
        async with self._lock:
            if self._fenced is not None:
                raise self._fenced
            names = await self.names()
            epoch = epoch_of(names)
            self._latest = max([self._latest, *(view.time for view in self.own.views)])
            if not self.own.views or self.own.views[-1].epoch != epoch:
                views = (*self.own.views, MembershipView(self._view_time(), epoch))[-MAX_VIEWS:]
                self.own = msgspec.structs.replace(self.own, views=views)
                await self._store.write(f"{RANKS}/{self.name}", encode_checksummed(self.own))
            self._latest = max(self._latest, self._clock())
            await self._check_rivals(names)
            return epoch

    def epoch_at(self, time: float) -> str:
        """The epoch that this agent had seen at a Unix time."""
        # A time in the future was written before the clock was set back: the real one is unknown.
        return epoch_at(self.own.views, time) if time <= self._clock() else ""

    def _view_time(self) -> float:
        """A time after all files that exist now, even if the clock was set back."""
        now = self._clock()
        return now if now >= self._latest else self._latest + CLOCK_MARGIN_SECONDS

    async def _read(self, name: str) -> GangMember:
        return await self._store.load(f"{RANKS}/{name}", decode_member)

    async def _begin(self, life: int, before: tuple[str, ...]) -> None:
        now = datetime.fromtimestamp(self._clock(), UTC)
        own = GangMember(FORMAT, self._agent_id, now, self._commits.last, before, self.own.views)
        name = member_name(self._rank, self._agent_id, life)
        await self._store.write(f"{RANKS}/{name}", encode_checksummed(own))
        self.name, self.own = name, own

    async def _check_rivals(self, names: list[str]) -> None:
        """Raise `Fenced` if a rival came later."""
        before = {found[2] for found in map(member_of, self.own.before) if found}
        for name in names:
            rank, _, agent_id = member_of(name) or (-1, 0, "")
            if rank != self._rank or agent_id in {self._agent_id, *before} or name in self._yielding:
                continue
            try:
                rival = await self._read(name)
            except (NotFound, Corrupt) as error:
                log.warning("an announcement cannot be read", name=name, reason=str(error))
                continue
            if takes_over(rival, agent_id, rank, self._agent_id):
                self._fenced = self._fence(rival)
                raise self._fenced
            self._yielding.add(name)

    def _fence(self, rival: GangMember) -> Fenced:
        log.error("another agent took over", agent_id=rival.agent_id, rank=self._rank)
        return Fenced.of(
            f"another agent writes as rank {self._rank} of {self._store.lineage} in place of this one",
            f"{rival.agent_id} has taken part since {rival.created}",
            "Stop this pod or the other one; concurrent training runs need a lineage each: --lineage NAME, "
            "or podferry.io/lineage in a pod",
        )

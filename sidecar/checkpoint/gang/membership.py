"""Who takes part in a lineage that several pods write: announces this agent, and watches for the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec
import structlog

from podferry.contract.errors import Corrupt, Fenced, NotFound
from podferry.contract.rank_parts import (
    FORMAT,
    RANKS,
    GangMember,
    MembershipView,
    decode_member,
    encode_rank_document,
    epoch_of,
    member_name,
    member_of,
)
from podferry.sidecar.checkpoint.commit.commit_log import CommitLog
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore

log = structlog.get_logger(__name__)

VIEWS = 16
"""Generations that are remembered: files wait minutes for their upload, pods start within seconds."""
MARGIN = 60.0
"""Seconds: much longer than between two looks, after the last of which a clock may have been set back."""


def seen_at(views: Iterable[MembershipView], time: float) -> str:
    """The generation that had been seen at a time; empty where none had been.

    After a clock was set back, the older views count until it has passed them. That refuses parts, and joins
    none that do not belong together.
    """
    found = ""
    for view in views:
        if view.time > time:
            break
        found = view.generation
    return found


def takes_over(rival: GangMember, other: str, rank: int, writer: str) -> bool:
    """Whether a rival of the same rank came after `writer`, or in the same moment and wins by its name.

    Args:
        rival: Its document.
        other: Its writer's name.
        rank: Of both.
        writer: Who asks; it had not found the rival there when it came.
    """
    known = {(found[0], found[2]) for found in map(member_of, rival.before) if found}
    return (rank, writer) in known or other > writer


class Membership:
    """One agent among those of its lineage.

    Attributes:
        name: This agent's own name below `RANKS`; empty before `announce`.
        own: What it says.
    """

    def __init__(
        self,
        store: LineageStore,
        rank: int,
        writer: str,
        commits: CommitLog,
        clock: Callable[[], float],
    ) -> None:
        self.name = ""
        self.own = GangMember(FORMAT, writer, datetime.fromtimestamp(0, UTC), 0)
        self._store, self._commits, self._clock = store, commits, clock
        self._rank, self._writer = rank, writer
        self._latest = 0.0
        self._settled_with: set[str] = set()
        self._fenced: Fenced | None = None
        self._lock = asyncio.Lock()

    async def names(self) -> list[str]:
        """All names that are there now."""
        found = await self._store.children(RANKS)
        return [name for name in found if member_of(name) is not None]

    async def announce(self) -> None:
        """Write this life's name, or find it, where only the worker has started anew."""
        names = await self.names()
        lives = [
            life for rank, life, writer in filter(None, map(member_of, names)) if self._is_us(rank, writer)
        ]
        if lives:
            self.name = member_name(self._rank, self._writer, max(lives))
            self.own = await self._read(self.name)
        else:
            await self._commits.look()
            await self._begin(1, tuple(names))
        await self.refresh()

    async def renew(self) -> None:
        """Take a new name, for a trainer that has begun anew; the old one goes when the new one is there."""
        old, found = self.name, member_of(self.name)
        assert found is not None  # noqa: S101 - it was made by `member_name`
        await self._commits.look(self._commits.last)
        await self._begin(found[1] + 1, self.own.before)
        await self._store.delete([self._path(old)])
        await self.refresh()

    async def refresh(self) -> str:
        """Look who is there now; the generation.

        Raises:
            Fenced: Another agent of this rank has come later.
        """
        async with self._lock:
            if self._fenced is not None:
                raise self._fenced
            names = await self.names()
            generation = epoch_of(names)
            self._latest = max([self._latest, *(view.time for view in self.own.views)])
            if not self.own.views or self.own.views[-1].generation != generation:
                views = (*self.own.views, MembershipView(self._seen_by(), generation))[-VIEWS:]
                self.own = msgspec.structs.replace(self.own, views=views)
                await self._store.write(self._path(self.name), encode_rank_document(self.own))
            self._latest = max(self._latest, self._clock())
            await self._give_way(names)
            return generation

    def seen_at(self, time: float) -> str:
        """The generation that this agent had seen at a time, in seconds since the epoch.

        What is of the future was written before the clock was set back: nobody knows when.
        """
        return seen_at(self.own.views, time) if time <= self._clock() else ""

    def _seen_by(self) -> float:
        """A time after all files that have been written until now, also where the clock was set back."""
        now = self._clock()
        return now if now >= self._latest else self._latest + MARGIN

    def _is_us(self, rank: int, writer: str) -> bool:
        return (rank, writer) == (self._rank, self._writer)

    def _path(self, name: str) -> str:
        return f"{RANKS}/{name}"

    async def _read(self, name: str) -> GangMember:
        return await self._store.load(self._path(name), decode_member)

    async def _begin(self, life: int, before: tuple[str, ...]) -> None:
        now = datetime.fromtimestamp(self._clock(), UTC)
        own = GangMember(FORMAT, self._writer, now, self._commits.last, before, self.own.views)
        name = member_name(self._rank, self._writer, life)
        await self._store.write(self._path(name), encode_rank_document(own))
        self.name, self.own = name, own

    async def _give_way(self, names: list[str]) -> None:
        """Raise `Fenced` where a rival came later."""
        before = {found[2] for found in map(member_of, self.own.before) if found}
        for name in names:
            rank, _, writer = member_of(name) or (-1, 0, "")
            if rank != self._rank or writer in {self._writer, *before} or name in self._settled_with:
                continue
            try:
                rival = await self._read(name)
            except (NotFound, Corrupt) as error:
                log.warning("an announcement cannot be read", name=name, reason=str(error))
                continue
            if takes_over(rival, writer, rank, self._writer):
                self._fenced = self._fence(rival)
                raise self._fenced
            self._settled_with.add(name)

    def _fence(self, rival: GangMember) -> Fenced:
        log.error("another agent has taken over", writer=rival.writer, rank=self._rank)
        return Fenced.of(
            f"another agent writes as rank {self._rank} of {self._store.lineage} in place of this one",
            f"{rival.writer} has been there since {rival.created}",
            "End this pod, or the other one; trainings that run side by side need a lineage each",
        )

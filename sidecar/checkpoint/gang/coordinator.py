"""Commits checkpoints that several pods write together: each uploads its own files, and all parts are joined.

A rank writes its `RankPart` when its files are uploaded. The rank that then finds the parts of all ranks
commits them. Parts of two attempts must never be joined: after a restart, the trainers write the same steps
again, with other bytes. No file says which attempt wrote it, so the *epoch* does, the set of all lives of all
ranks (`contract/destination/rank_parts.py`):

* A life writes its name before its gate opens, so before its trainer writes anything.
* A part has the epoch that its agent had seen before the files were last changed. An epoch older than the
  true one only causes a refusal. A file that is older than all that the agent has seen has none.
* Only parts of one epoch are joined, and only while it is current. The parts are read first, then the names:
  another attempt replaces a part only after it has written its name.
* A trainer that restarts under a living agent shows this by what it writes: a name with other content, or a
  lower step at a later time. The agent then takes a new name, as a new life would. Files that are only added
  to a checkpoint are of the same attempt.
* Commits are created one number after another, and all of this is checked again before each try. So of two
  that race, one sees the other: two equal ones become one; of two that differ, or if one is behind a step of
  the same attempt, the later one is refused.

An agent that starts commits what is complete, announces itself, and only then chooses what to restore: from
then on, nothing older can be committed. One request remains: that of an agent that has read the names before
the announcement, and whose commit arrives after the choice. That commit is complete and of one attempt. Steps
behind it are refused to the new attempt, since its parts record which commits existed when it began
(`RankPart.base`). But a rank that starts at that very moment may resume from it while another has resumed
from the commit before. Also undetected is a trainer that restarts in place and reaches a step for the first
time before another rank, whose trainer had saved that step in the previous attempt, shows that it restarted.
`Membership.new_epoch` is there for callers that know of such a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from podferry.contract.destination.commit import Commit, CommittedFile, Doubt, step_of
from podferry.contract.destination.rank_parts import FORMAT, RankPart, epoch_of, series_and_position
from podferry.contract.errors import Problem, Refused
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.gang import join_rules
from podferry.sidecar.checkpoint.gang.joiner import RESTARTED, PartJoiner
from podferry.sidecar.checkpoint.gang.membership import Membership
from podferry.sidecar.checkpoint.gang.part_registry import PartRegistry

log = structlog.get_logger(__name__)


class GangCoordinator:
    """One rank of those that write a lineage's checkpoints together.

    Call order: 1. `commit_before_start`, 2. `announce`, then repeatedly 3. `publish` and `commit_complete`.

    Attributes:
        membership: The agents that take part.
    """

    def __init__(self, committer: Committer, clock: Callable[[], float]) -> None:
        identity = committer.identity
        assert identity.rank is not None  # noqa: S101 - the plan refuses several pods that have no rank
        self._committer, self._clock = committer, clock
        self._identity, self._rank, self._world = identity, identity.rank, identity.world
        self._parts = PartRegistry(committer.reader)
        self.membership = Membership(committer.store, identity, committer.log, clock)
        self._joiner = PartJoiner(committer, self._parts, self.membership)
        self._published: dict[str, RankPart] = {}
        self._abandoned: dict[str, Problem] = {}
        self._missing: dict[str, list[int]] = {}
        self._commits: list[Commit] = []
        self._problems: dict[str, Problem] = {}
        self._lock = asyncio.Lock()
        self._latest: dict[str, tuple[tuple[int, ...], float]] = {}

    async def commit_before_start(self) -> list[Commit]:
        """Commit what is complete, before this agent announces itself and chooses what to restore."""
        epoch = epoch_of(await self.membership.names())
        committed = []
        for name in sorted(await self._parts.names(), key=series_and_position):
            parts = await self._parts.of(name)
            if not join_rules.missing_ranks(parts, self._world, epoch):
                committed.append(await self._joiner.commit(name, parts, epoch))
        return [commit for commit in committed if commit is not None]

    async def announce(self) -> None:
        """Join the gang. Call it before the trainer may write anything."""
        await self.membership.announce()

    def is_abandoned(self, name: str) -> bool:
        """Whether a checkpoint was given up or is behind a newer one."""
        return name in self._abandoned or self._newer(name) is not None

    def failure(self, name: str) -> Problem | None:
        """Why an abandoned part is not durable; None if a newer checkpoint is durable instead."""
        return self._abandoned.get(name) if self._newer(name) is None else None

    async def publish(
        self,
        name: str,
        folder: str,
        files: tuple[CommittedFile, ...],
        changed_at: float,
        doubts: tuple[Doubt, ...] = (),
    ) -> None:
        """Publish this rank's part of a checkpoint after all of its files were uploaded.

        Args:
            name: The checkpoint's, the same for all ranks.
            folder: Where the files that were uploaded for it are, relative to the lineage.
            files: Those of this rank.
            changed_at: When the newest of them was last changed, as a Unix time.
            doubts: Why they may be incomplete.

        Raises:
            Refused: The name has no step.
            Fenced: Another agent has taken over.
            Changed: Data that it refers to was removed: upload it again.
        """
        if problem := join_rules.no_step_problem(name):
            raise Refused(problem)
        async with self._lock:
            await self.membership.refresh()
            if await self._has_restarted(name, files, changed_at):
                log.warning("the trainer has restarted: its earlier parts are no longer joined", name=name)
                await self.membership.new_epoch()
            part = self._part(name, folder, tuple(sorted(files)), changed_at, doubts)
            await self._parts.write(part)
            await self._parts.check_references(part)
            self._abandoned.pop(name, None)
            self._published[name] = part

    def _part(
        self,
        name: str,
        folder: str,
        files: tuple[CommittedFile, ...],
        changed_at: float,
        doubts: tuple[Doubt, ...],
    ) -> RankPart:
        return RankPart(
            format=FORMAT,
            lineage=self._committer.store.lineage,
            name=name,
            step=step_of(name),
            rank=self._rank,
            world=self._world,
            agent_id=self._identity.agent_id,
            member=self.membership.name,
            epoch=self.membership.epoch_at(changed_at),
            base=self.membership.own.base,
            folder=folder,
            files=files,
            created=datetime.fromtimestamp(self._clock(), UTC),
            doubts=doubts,
        )

    async def commit_complete(self) -> tuple[list[Commit], list[Problem]]:
        """Commit what is complete; returns new commits with a part of this rank, and what is still missing.

        Raises:
            Fenced: A later agent of this rank has taken over.
        """
        async with self._lock:
            epoch = await self.membership.refresh()
            await self._committer.log.refresh(self.membership.own.base)
            for name in sorted(self._published, key=series_and_position):
                await self._advance(self._published[name], epoch)
            # Kept in attributes until here: an error on the way must not lose what was found before it.
            commits, self._commits = self._commits, []
            problems, self._problems = list(self._problems.values()), {}
        return commits, problems

    async def _advance(self, part: RankPart, epoch: str) -> None:
        commit = await self._joiner.commit_of(part) or await self._join(part, epoch)
        if commit is not None:
            self._forget(part)
            self._commits.append(commit)

    async def _join(self, part: RankPart, epoch: str) -> Commit | None:
        """Commit a part together with those of the other ranks, if all are there."""
        parts = await self._parts.of(part.name)
        missing = join_rules.missing_ranks(parts, self._world, epoch)
        if reason := self._obsolete(part, epoch):
            self._abandon(part, reason, [rank for rank in missing if rank != self._rank])
            return None
        if parts.get(self._rank) != part:
            await self._parts.write(part)  # an older agent of this rank has replaced it
        if missing:
            self._missing[part.name] = missing
            what = f"{part.name} waits for {self._names_of(missing)}"
            self._problems[part.name] = Problem(what, f"since {part.created}")
            return None
        commit = await self._joiner.commit(part.name, parts, epoch)
        return commit if commit is not None and join_rules.contains(commit, part) else None

    def _newer(self, name: str) -> Commit | None:
        return join_rules.newer(self._committer.log.known, name, self.membership.own.base)

    def _obsolete(self, part: RankPart, epoch: str) -> str | None:
        """Why a part can no longer be committed, or None."""
        if commit := self._newer(part.name):
            other_files = ", with other files" if commit.name == part.name else ""
            return f"{commit.name} is already durable{other_files}"
        return None if part.epoch == epoch else RESTARTED

    def _names_of(self, ranks: list[int]) -> str:
        word = "rank" if len(ranks) == 1 else "ranks"
        return f"{word} {', '.join(map(str, ranks))} of {self._world}"

    def _abandon(self, part: RankPart, reason: str, missing: list[int]) -> None:
        """Stop publishing a part. The object stays: other content of this name is still recognized by it."""
        # If a commit came later, the other parts were swept away: what was missing before counts.
        missing = self._missing.get(part.name, missing)
        self._forget(part)
        lacked = f"; it lacked {self._names_of(missing)}" if missing else ""
        problem = Problem(f"{part.name} was given up", f"{reason}{lacked}")
        log.warning(problem.what, name=part.name, reason=problem.measured)
        self._problems[part.name] = self._abandoned[part.name] = problem

    def _forget(self, part: RankPart) -> None:
        self._missing.pop(part.name, None)
        if self._published.get(part.name) is part:
            del self._published[part.name]

    async def _has_restarted(self, name: str, files: tuple[CommittedFile, ...], changed_at: float) -> bool:
        """Whether a part cannot be of the same attempt as those that this life has published before."""
        series, position = series_and_position(name)
        highest, then = self._latest.get(series, (position, changed_at))
        # An older agent of this rank may have replaced the stored part.
        before = filter(None, (await self._parts.read(name, self._rank), self._published.get(name)))
        of_this_life = (part for part in before if part.member == self.membership.name)
        rewritten = not all(join_rules.superset_of(part, files) for part in of_this_life)
        if rewritten or (position < highest and changed_at > then):
            self._latest = {series: (position, changed_at)}
            return True
        self._latest[series] = max((highest, then), (position, changed_at))
        return False

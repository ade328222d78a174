"""One checkpoint of several pods: each sends its own files, and it is real when all parts are there.

Each rank writes its `RankPart` when its files have been sent, and whoever then finds the parts of all ranks
commits them. What must never happen is that parts of two attempts are joined: after a restart the trainers
write the same steps again, with other bytes. Nobody tells the agents which attempt a file is of, so this is
told by the *generation*, the set of all lives of all ranks (`contract/rank_parts.py`):

* A life writes its name before its gate opens, so before its trainer writes anything.
* A part has the generation that its agent had seen before the files were last changed. One that is older than
  the truth only refuses. A file that is older than all that the agent has seen has none.
* Only parts of one generation are joined, and only while it is the current one. The parts are read first,
  then the names: a part is replaced by another attempt's after that attempt has written its name.
* A trainer that begins anew under a living agent shows by what it writes: a name with another content, or a
  lower step later. The agent then takes a new name, as a new life would. Files that are only added to a
  checkpoint are of the same attempt.
* Commits are created one number after the other, and the above is looked at again for each try. So of two
  that race one sees the other: two that are equal become one, and of two that differ, or where one is behind
  a step of the same attempt, the later one is refused.

An agent that starts completes what is complete, announces itself, and only then chooses what to restore: from
then on, nothing older can be completed. What is left is one request: an agent that has looked at the names
before the announcement, and whose commit arrives after the choice. That commit is whole, and of one attempt;
steps behind it are refused to the new attempt, since its parts know which commits were there when it began
(`RankPart.base`). But a rank that starts in that very moment may resume from it while another has resumed
from
the one before. Also not seen is a trainer that begins anew in place and reaches a step for the first time
before another rank, whose trainer had saved that step in the attempt before, shows that it has begun anew.
`renew` is there for whoever knows of such a start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import structlog

from podferry.contract.commit import Commit, CommittedFile, step_of
from podferry.contract.errors import FerryError, Problem, Refused, Superseded
from podferry.contract.rank_parts import (
    FORMAT,
    RankPart,
    epoch_of,
    joined_files,
    joined_folder,
    series_and_position,
)
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.gang.join_rules import (
    contains,
    missing_ranks,
    newer,
    no_step_problem,
    superset_of,
)
from podferry.sidecar.checkpoint.gang.membership import Membership
from podferry.sidecar.checkpoint.gang.part_registry import PartRegistry

log = structlog.get_logger(__name__)


class GangCoordinator:
    """One rank among those that write a lineage's checkpoints together."""

    def __init__(
        self,
        committer: Committer,
        author: AgentIdentity,
        world: int,
        clock: Callable[[], float],
    ) -> None:
        assert author.rank is not None  # noqa: S101 - the plan refuses several pods that have no rank
        self._committer, self._world, self._clock = committer, world, clock
        self._rank, self._writer = author.rank, author.writer
        self._shares = PartRegistry(committer.reader)
        self._members = Membership(committer.reader.store, author.rank, author.writer, committer.log, clock)
        self._offered: dict[str, RankPart] = {}
        self._given_up: dict[str, Problem] = {}
        self._lacked: dict[str, list[int]] = {}
        self._commits: list[Commit] = []
        self._problems: dict[str, Problem] = {}
        self._lock = asyncio.Lock()
        self._latest: dict[str, tuple[tuple[int, ...], float]] = {}

    async def settle_before_start(self) -> list[Commit]:
        """Complete what is complete, before this agent announces itself and chooses what to restore."""
        generation = epoch_of(await self._members.names())
        committed = []
        for name in sorted(await self._shares.names(), key=series_and_position):
            parts = await self._shares.of(name)
            if not missing_ranks(parts, self._world, generation):
                committed.append(await self._commit(name, parts, generation))
        return [commit for commit in committed if commit is not None]

    async def announce(self) -> None:
        """Take part from now on: to be called before the trainer may write anything."""
        await self._members.announce()

    async def refresh(self) -> None:
        """Look who else takes part; to be called every few seconds.

        Raises:
            Fenced: Another agent of this rank has come later.
        """
        await self._members.refresh()

    async def renew(self) -> None:
        """The trainer has begun anew under this agent: what it has written before is joined no more."""
        await self._members.renew()

    def superseded(self, name: str) -> bool:
        """Whether a checkpoint has been given up, or comes too late."""
        return name in self._given_up or self._late(name) is not None

    def lost(self, name: str) -> Problem | None:
        """Why a part that was given up is not durable, None where a newer checkpoint is."""
        return self._given_up.get(name) if self._late(name) is None else None

    def _late(self, name: str) -> Commit | None:
        return newer(self._committer.log.known, name, self._members.own.base)

    async def submit(
        self, name: str, shipment_folder: str, files: tuple[CommittedFile, ...], seen_before: float
    ) -> None:
        """Offer this rank's part of a checkpoint, all of whose files have been sent.

        Args:
            name: The checkpoint's, the same for all ranks.
            shipment_folder: Where the files lie that were sent for it, relative to the lineage.
            files: Those of this rank.
            seen_before: When the newest of them was last changed, in seconds since the epoch.

        Raises:
            Refused: The name tells no step.
            Fenced: Another agent has taken over.
            Changed: Data that it refers to has been removed meanwhile: it is to be sent again.
        """
        problem = no_step_problem(name)
        if problem is not None:
            raise Refused(problem)
        async with self._lock:
            await self._submit(name, shipment_folder, tuple(sorted(files)), seen_before)

    async def _submit(
        self, name: str, folder: str, files: tuple[CommittedFile, ...], seen_before: float
    ) -> None:
        await self._members.refresh()
        if await self._began_anew(name, files, seen_before):
            log.warning(
                "the trainer has begun anew: parts that it wrote before are joined no more", name=name
            )
            await self._members.renew()
        own = self._members.own
        part = RankPart(
            format=FORMAT,
            lineage=self._committer.reader.lineage,
            name=name,
            step=step_of(name),
            rank=self._rank,
            world=self._world,
            writer=self._writer,
            member=self._members.name,
            generation=self._members.seen_at(seen_before),
            base=own.base,
            folder=folder,
            files=files,
            created=datetime.fromtimestamp(self._clock(), UTC),
        )
        await self._shares.write(part)
        await self._shares.check_references(part)
        self._given_up.pop(name, None)
        self._offered[name] = part

    async def settle(self) -> tuple[list[Commit], list[Problem]]:
        """Commit what is complete; new commits that hold a part of this rank, and who else is awaited.

        Raises:
            Fenced: Another agent of this rank has come later.
        """
        async with self._lock:
            generation = await self._members.refresh()
            await self._committer.log.look(self._members.own.base)
            for name in sorted(self._offered, key=series_and_position):
                await self._advance(self._offered[name], generation)
            # Kept until here: an error on the way must not swallow what has been found before it.
            commits, self._commits = self._commits, []
            problems, self._problems = list(self._problems.values()), {}
        return commits, problems

    async def _advance(self, part: RankPart, generation: str) -> None:
        standing = await self._standing(part)
        if standing is not None:
            self._finish(part, standing)
            return
        parts = await self._shares.of(part.name)
        missing = missing_ranks(parts, self._world, generation)
        reason = self._too_late(part, generation)
        if reason is not None:
            self._give_up(part, reason, [rank for rank in missing if rank != self._rank])
            return
        if parts.get(self._rank) != part:
            await self._shares.write(part)  # an older agent of this rank has replaced it
        if missing:
            self._lacked[part.name] = missing
            what = f"{part.name} waits for {self._named(missing)}"
            self._problems[part.name] = Problem(what, f"since {part.created}")
            return
        commit = await self._commit(part.name, parts, generation)
        if commit is not None and contains(commit, part):
            self._finish(part, commit)

    def _too_late(self, part: RankPart, generation: str) -> str | None:
        late = self._late(part.name)
        if late is not None:
            same = ", with other files" if late.name == part.name else ""
            return f"{late.name} is durable already{same}"
        return None if part.generation == generation else "a rank has begun anew since it was written"

    def _named(self, ranks: list[int]) -> str:
        word = "rank" if len(ranks) == 1 else "ranks"
        return f"{word} {', '.join(map(str, ranks))} of {self._world}"

    async def _commit(self, name: str, parts: Mapping[int, RankPart], generation: str) -> Commit | None:
        """Commit parts that are all there; None where that is too late.

        The parts have been read before: see the module's docstring.
        """
        ordered = [parts[rank] for rank in range(self._world)]
        files, base = joined_files(ordered), min(part.base for part in ordered)

        async def check() -> None:
            await self._committer.log.look(base)
            late = newer(self._committer.log.known, name, base)
            if late is not None:
                raise Superseded.of(f"{name} is not committed", f"{late.name} is durable already")
            if epoch_of(await self._members.names()) != generation:
                raise Superseded.of(f"{name} is not committed", "a rank has begun anew since it was written")

        try:
            commit = await self._committer.commit(name, joined_folder(name, files), files, check=check)
        except Superseded as error:
            log.info("parts that are all there come too late", name=name, reason=str(error))
            return None
        try:
            await self._shares.sweep(commit)
        except FerryError as error:
            log.warning("parts that are done with were left", reason=str(error))
        return commit

    async def _standing(self, part: RankPart) -> Commit | None:
        """The commit that has made a part real."""
        for number, known in sorted(self._committer.log.known.items(), reverse=True):
            if known.name == part.name and number > part.base:
                commit = await self._committer.log.read(number)
                if commit is not None and contains(commit, part):
                    return commit
        return None

    def _finish(self, part: RankPart, commit: Commit) -> None:
        self._forget(part)
        self._commits.append(commit)

    def _give_up(self, part: RankPart, reason: str, missing: list[int]) -> None:
        """Offer a part no more. It stays where it is: another content of this name is still known as such."""
        missing = self._lacked.get(
            part.name, missing
        )  # where a commit came after, its parts have been swept away
        self._forget(part)
        lacking = f"; it lacked {self._named(missing)}" if missing else ""
        problem = Problem(f"{part.name} was given up", f"{reason}{lacking}")
        log.warning(problem.what, name=part.name, reason=problem.measured)
        self._problems[part.name] = self._given_up[part.name] = problem

    def _forget(self, part: RankPart) -> None:
        self._lacked.pop(part.name, None)
        if self._offered.get(part.name) is part:
            del self._offered[part.name]

    async def _began_anew(self, name: str, files: tuple[CommittedFile, ...], changed: float) -> bool:
        """Whether what is offered cannot be of the same attempt as what this life has offered before."""
        kind, place = series_and_position(name)
        highest, then = self._latest.get(kind, (place, changed))
        # An older agent of this rank may have replaced the one that is there.
        before = filter(None, (await self._shares.read(name, self._rank), self._offered.get(name)))
        again = any(part.member == self._members.name and not superset_of(part, files) for part in before)
        if again or (place < highest and changed > then):
            self._latest = {kind: (place, changed)}
            return True
        self._latest[kind] = max((highest, then), (place, changed))
        return False

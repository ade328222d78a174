"""Stops an agent from committing once another agent of the same rank has taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

import structlog

from podferry.contract.destination.commit import Commit, CommittedFile
from podferry.contract.destination.rank_parts import FORMAT, GangMember, decode_member
from podferry.contract.errors import Fenced, Problem
from podferry.contract.versioned_json import encode_checksummed
from podferry.sidecar.checkpoint.commit.agent_identity import AGENTS_PREFIX, AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_log import CommitLog, observed_sequence
from podferry.sidecar.checkpoint.commit.conditional_create import create_checked
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore

log = structlog.get_logger(__name__)


def fenced_by(agent_id: str, rank: int | None, commits: Iterable[Commit]) -> Commit | None:
    """The commit by which another agent of the same rank took over, or None.

    The other agent had seen a commit of this one, or took a number that this one had reserved: an agent that
    reserves numbers is draining and gives way to one that has started. An agent that has not committed yet is
    never fenced.

    Args:
        agent_id: This agent.
        rank: Its rank; commits of other ranks never fence it.
        commits: Those that this agent has not examined yet, and its own newest.
    """
    same_rank = [commit for commit in commits if commit.rank == rank]
    own = [commit for commit in same_rank if commit.agent_id == agent_id]
    if not own:
        return None
    newest = max(own, key=lambda commit: commit.sequence)
    reserved = range(observed_sequence(newest) + 1, newest.sequence)
    others = [commit for commit in same_rank if commit.agent_id != agent_id]
    rivals = [
        rival for rival in others if observed_sequence(rival) >= newest.sequence or rival.sequence in reserved
    ]
    return max(rivals, key=lambda commit: commit.sequence, default=None)


class FencedLog:
    """The commit log as one agent reads it before each commit, until another agent takes over."""

    def __init__(
        self, commits: CommitLog, store: LineageStore, identity: AgentIdentity, now: Callable[[], datetime]
    ) -> None:
        self._log, self._store, self._identity, self._now = commits, store, identity, now
        self._base: int | None = None
        self._sequences: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        self._newest = 0
        self._fenced: Fenced | None = None

    def check(self) -> None:
        """Raise `Fenced` if another agent is known to have taken over."""
        if self._fenced is not None:
            raise self._fenced

    async def refresh(self) -> None:
        """Read the commits that were created since the last call; raises as `check` does."""
        self.check()
        if self._identity.world > 1:  # other ranks commit this one's files too: the gang coordinator decides
            await self._log.refresh(max(self._log.known, default=None))
            return
        if self._base is None:
            self._base = await self._first_base()
        if not self._store.destination.exclusive_create:
            self._log.known.pop(self._newest, None)  # it may have been replaced
        await self._log.refresh(self._base, self._examined_by)
        commits = list(self._log.known.values())
        rival = fenced_by(self._identity.agent_id, self._identity.rank, commits) or self._replacement()
        if rival is not None:
            self._fenced = self._fence(rival)
            raise self._fenced
        for commit in commits:
            self._versions[commit.name] = max(self._versions.get(commit.name, 0), commit.sequence)
        self._log.forget(max(map(self._examined_by, commits), default=0))

    async def find(self, folder: str, files: tuple[CommittedFile, ...]) -> Commit | None:
        """The commit of exactly this content: an answer was lost, or another agent was faster."""
        same = {number for number, commit in self._log.known.items() if commit.checkpoint == folder}
        own = {self._sequences.get(folder, 0)} & self._log.numbers
        for number in sorted(same | own, reverse=True):
            found = await self._log.read(number)
            if found is not None and (found.checkpoint, found.files) == (folder, files):
                return found
        return None

    def is_outdated(self, commit: Commit) -> bool:
        """Whether another version of the same name was committed later."""
        return self._versions.get(commit.name, 0) > commit.sequence

    def add(self, commit: Commit) -> None:
        """Record a commit that `find` returned or this agent created."""
        self._log.add(commit)
        self._sequences[commit.checkpoint] = commit.sequence
        if commit.agent_id == self._identity.agent_id:
            self._newest = max(self._newest, commit.sequence)

    def _replacement(self) -> Commit | None:
        """The commit of another agent of this rank that has the number of this agent's newest one."""
        found, identity = self._log.known.get(self._newest), self._identity
        if found is None or found.agent_id == identity.agent_id or found.rank != identity.rank:
            return None
        return found

    def _examined_by(self, commit: Commit) -> int:
        """The number up to which this agent had seen the log when it created a commit; 0 if others did."""
        if commit.agent_id != self._identity.agent_id:
            return 0
        self._sequences.setdefault(commit.checkpoint, commit.sequence)
        return observed_sequence(commit)

    async def begin(self, newest: int) -> None:
        """Record the newest number at the beginning of this agent's life; a restarted worker finds it again.

        So an agent finds its own commits without reading older ones. Raises as `create_checked` does: a store
        that cannot create conditionally is refused before training starts.
        """
        record = encode_checksummed(self._member(newest))
        created = await create_checked(self._store, self._record_name, record)
        self._base = newest if created else (await self._store.load(self._record_name, decode_member)).base

    async def _first_base(self) -> int:
        """The recorded number, for a worker that restarted while its pod trains."""
        member = await self._store.find(self._record_name, decode_member)
        if member is None:
            await self._log.refresh()
            member = self._member(self._log.last)
            await self._store.write(self._record_name, encode_checksummed(member))
        return member.base

    @property
    def _record_name(self) -> str:
        return f"{AGENTS_PREFIX}/{self._identity.agent_id}.json"

    def _member(self, base: int) -> GangMember:
        return GangMember(FORMAT, self._identity.agent_id, self._now(), base)

    def _fence(self, rival: Commit) -> Fenced:
        run = f" of run {rival.run}" if rival.run else ""
        by = f" for {rival.origin}" if rival.origin else ""
        at = rival.created.isoformat(timespec="seconds")
        problem = Problem(
            f"another run of {self._store.lineage} has taken over: this one uploads no more checkpoints",
            f"agent {rival.agent_id}{run}{by} created commit {rival.sequence}, {rival.name}, at {at}",
            "Stop this run or the other one; concurrent training runs need a lineage each: --lineage NAME, "
            "or podferry.io/lineage in a pod",
        )
        log.error("another agent took over", agent_id=rival.agent_id, reason=str(problem))
        return Fenced(problem)

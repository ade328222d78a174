"""Writes the object that makes a checkpoint real.

A commit's number is its age, and numbers only grow: each is created conditionally, by a writer that has just
read what others have committed since it last looked. A drain sends the newest checkpoint first and leaves it
room, free numbers below its own, which older ones take later.

Of two agents that write a lineage as the same rank (an old pod on a node that was cut off, a second start by
hand) the later one takes over with its first commit, and the earlier one never commits again. It learns this
from the log itself, before each create: if the other's commit was there, it reads it; if it comes at the same
time, the number is taken. Only a commit that leaves room can slip past another one, whose number then lies in
that room; who leaves room gives way then, and `Commit.room` tells the two apart for ever (`commitlog.py`).

Where the store cannot create atomically (`Store.exclusive_create`), a number is looked at, written and read
back. With one writer at a time, as a Job's pods are, all promises hold. With two at the same moment one
commit may replace another of the same number after that one was read back: it is lost then although it was
called durable. Its writer finds out at its next commit, since it reads its own number again, and is fenced
where the two have one rank. Its data stays, and never is a commit half of one and half of another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec
import structlog

from podferry.contract.commit import (
    FORMAT,
    LATEST,
    PRIVATE,
    Commit,
    CommittedFile,
    commit_name,
    encode_commit,
    step_of,
)
from podferry.contract.errors import AlreadyExists, Fenced, FerryError, NotFound
from podferry.contract.rank_parts import FORMAT as MEMBER_FORMAT
from podferry.contract.rank_parts import GangMember, decode_member
from podferry.contract.rank_parts import encode_rank_document as encode_member
from podferry.sidecar.checkpoint.commit.agent_identity import AGENTS_PREFIX, AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_log import (
    CommitLog,
    fenced_by,
    number_under,
    observed_sequence,
)
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.runtime.concurrency import retry
from podferry.storage.store import Body, WriteMode

log = structlog.get_logger(__name__)

Files = tuple[CommittedFile, ...]


class Committer:
    """The commits of one lineage, by one writer.

    Attributes:
        log: What is known of everybody's commits.
    """

    def __init__(
        self,
        reader: CommitReader,
        author: AgentIdentity,
        now: Callable[[], datetime],
        attempts: int = 3,
    ) -> None:
        self.reader = reader
        self.log = CommitLog(reader)
        self._store = reader.store
        self._author = author
        self._now = now
        self._attempts = attempts
        self._base: int | None = None
        self._made: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        self._newest = 0
        self._fenced: Fenced | None = None
        self._folders: set[str] | None = None

    @property
    def writer(self) -> str:
        """The agent that commits."""
        return self._author.writer

    async def write(self, name: str, body: Body) -> None:
        """Write an object of the lineage.

        Raises:
            Fenced: Another agent has taken over.
        """
        if self._fenced is not None:
            raise self._fenced
        await self._store.write(name, body)

    async def earlier(self, name: str, folder: str) -> Commit | None:
        """The commit that already made this very content real, if any: it is not committed again.

        Else an agent that starts over a directory of old checkpoints would commit them after newer ones. If
        another version of the same name was committed since, the trainer has come back to this one: it is the
        newest then.
        """
        if self._folders is None:
            self._folders = {name.rstrip("/") for name in await self._store.children()}
        if folder not in self._folders:
            return None
        async for commit in self.reader.newest_first():
            if commit.checkpoint == folder:
                # Somebody may have removed its objects since: then it is sent and committed anew.
                return None if await self.reader.flaws(commit) else commit
            if commit.name == name:
                return None
        return None

    async def announce(self) -> None:
        """Write who writes here now: finds out before training starts whether the destination takes it.

        Raises:
            AccessDenied, BucketNotFound: It does not.
        """
        note = {"writer": self._author.writer, "since": self._now(), "run": self._author.run}
        await self._store.write(f"{PRIVATE}/writer.json", msgspec.json.encode(note))

    async def commit(
        self,
        name: str,
        folder: str,
        files: Files,
        *,
        room: int = 0,
        below: int | None = None,
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> Commit:
        """Make a checkpoint real whose files have all been sent.

        Args:
            name: What the trainer calls it.
            folder: The name and the hash of its content.
            files: All of them, sorted by name.
            room: How many numbers to leave free under its own, for older checkpoints that go out later.
            below: The number of a newer checkpoint that has left room: this one gets the highest free number
                there.
            check: Called before each try to create it, after the log has been read; raises where it must not
                be committed any more.

        Raises:
            Fenced: Another agent has taken over; from now on nothing is written.
            Superseded: No number is free below the newer checkpoint.
            FerryError: The store's, after the attempts are spent. The checkpoint is then not committed, or
                is and nobody knows; committing the same content once more is harmless.
        """
        while True:
            await self._look()
            standing = await self._already(folder, files)
            # An answer that was lost is the newest of its name; one that goes below another is not.
            if standing is not None and (below is not None or not self._replaced_since(standing)):
                break
            if check is not None:
                await check()
            if below is not None and below not in self.log.known:
                await self.log.read(below)
            standing = await self._create(self._next(name, folder, files, room, below))
            if standing is not None:
                break
        self.log.add(standing)
        self._made[folder] = standing.sequence
        if standing.writer == self._author.writer:
            self._newest = max(self._newest, standing.sequence)
        if self._folders is not None:
            self._folders.add(folder)
        if standing.sequence == self.log.last:
            await self._hint(standing)
        return standing

    async def _look(self) -> None:
        """Read what has appeared; raises `Fenced`."""
        if self._fenced is not None:
            raise self._fenced
        if self._author.world > 1:  # other ranks commit what is ours too: attempts are told apart by `Gang`
            await self.log.look(max(self.log.known, default=None))
            return
        if self._base is None:
            self._base = await self._begin()
        if not self._store.destination.exclusive_create:
            self.log.known.pop(self._newest, None)  # it may have been replaced
        await self.log.look(self._base, self._settled)
        commits = list(self.log.known.values())
        other = fenced_by(self._author.writer, self._author.rank, commits) or self._replaced()
        if other is not None:
            self._fenced = self._fence(other)
            raise self._fenced
        for commit in commits:
            self._versions[commit.name] = max(self._versions.get(commit.name, 0), commit.sequence)
        self.log.forget(max(map(self._settled, commits), default=0))

    def _replaced_since(self, commit: Commit) -> bool:
        """Whether another version of its name was committed later."""
        return self._versions.get(commit.name, 0) > commit.sequence

    def _replaced(self) -> Commit | None:
        """What stands under the number of our newest commit, where it is of another writer of our rank."""
        found = self.log.known.get(self._newest)
        ours = found is None or (found.writer == self._author.writer or found.rank != self._author.rank)
        return None if ours else found

    def _settled(self, commit: Commit) -> int:
        """The number up to which nothing is new to this writer, by what a commit says."""
        if commit.writer != self._author.writer:
            return 0
        self._made.setdefault(commit.checkpoint, commit.sequence)
        return observed_sequence(commit)

    async def _begin(self) -> int:
        """The newest commit's number when this writer's life began, remembered over starts of its worker.

        So what it has committed itself is found without reading what is older than it.
        """
        name = f"{AGENTS_PREFIX}/{self._author.writer}.json"
        try:
            return (await self._store.load(name, decode_member)).base
        except NotFound:
            await self.log.look()
            member = GangMember(MEMBER_FORMAT, self._author.writer, self._now(), self.log.last)
            await self._store.write(name, encode_member(member))
            return member.base

    def _fence(self, other: Commit) -> Fenced:
        run = f" of run {other.run}" if other.run else ""
        log.error("another agent has taken over", writer=other.writer, run=other.run, sequence=other.sequence)
        return Fenced.of(
            f"another agent commits to {self._store.lineage} in place of this one",
            f"{other.writer}{run} has created commit {other.sequence}, {other.name}, at {other.created}",
            "End this pod, or the other one; trainings that run side by side need a lineage each",
        )

    async def _already(self, folder: str, files: Files) -> Commit | None:
        """The commit of this very content that is there: the answer was lost, or others were faster."""
        same = {number for number, commit in self.log.known.items() if commit.checkpoint == folder}
        for number in sorted(same | {self._made.get(folder, 0)} & self.log.numbers, reverse=True):
            found = await self.log.read(number)
            if found is not None and (found.checkpoint, found.files) == (folder, files):
                return found
        return None

    def _next(self, name: str, folder: str, files: Files, room: int, below: int | None) -> Commit:
        number = self.log.last + 1 + room
        if below is not None:
            number = number_under(self.log.known.get(below), self.log.numbers)
        lower = max((taken for taken in self.log.numbers if taken < number), default=0)
        return Commit(
            format=FORMAT,
            sequence=number,
            lineage=self._store.lineage,
            checkpoint=folder,
            name=name,
            step=step_of(name),
            created=self._now(),
            files=files,
            writer=self._author.writer,
            world=self._author.world,
            run=self._author.run,
            rank=self._author.rank,
            room=number - 1 - (lower if below is not None else self.log.last),
        )

    async def _create(self, commit: Commit) -> Commit | None:
        """The commit of this content that stands under this number; None where another's does."""
        name = commit_name(commit.sequence)
        try:
            await retry(
                self._attempts, lambda: self._store.write(name, encode_commit(commit), WriteMode.CREATE)
            )
        except AlreadyExists:
            pass
        else:
            if self._store.destination.exclusive_create:
                return commit
        # Ours, where the answer was lost, in this try or in an earlier one that had another time on it.
        found = await self.log.read(commit.sequence)
        same = found is not None and (found.checkpoint, found.files) == (commit.checkpoint, commit.files)
        return found if same else None

    async def _hint(self, commit: Commit) -> None:
        try:
            await self._store.write(LATEST, encode_commit(commit))
        except FerryError as error:
            log.warning("latest.json was not updated; commits are the truth", reason=str(error))

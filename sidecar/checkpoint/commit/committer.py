"""Commits checkpoints: creates the object that makes a checkpoint durable.

Why this order of requests is safe:

Sequence numbers order the commits and only grow. Before an agent creates a commit, it reads what others have
committed since it last looked, and the create is conditional. A drain uploads the newest checkpoint first and
reserves free numbers directly below its commit; older checkpoints take them later.

Two agents may write a lineage as the same rank: an old pod on a node that lost its network, or a second start
by hand. The later agent takes over with its first commit, and the earlier one never commits again. It learns
this from the log itself before each create: it reads the other agent's commit if that already exists; if both
commit at the same time, the number is taken, so the create fails and the log is read again. Only a commit
that reserves numbers can miss another one, whose number is then among the reserved ones. In that case the
agent that reserved them gives way, and `Commit.reserved` keeps the cases apart for good (`fencing.py`).

If the store cannot create atomically (`Store.exclusive_create`), an agent checks that the number is free,
writes the commit and reads it back. With one writer at a time, as with a Job's pods, all guarantees hold.
With two at the same moment, a commit may be replaced by another of the same number after it was read back: it
is then lost although it was reported durable. Its agent notices at its next commit, since it reads its own
number again, and is fenced if both agents have the same rank. Its data stays, and no commit is ever a mixture
of two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from podferry.contract.destination.commit import (
    LATEST,
    Commit,
    CommittedFile,
    Doubt,
    commit_name,
    encode_commit,
)
from podferry.contract.destination.provenance import DatasetVersion
from podferry.contract.errors import (
    AlreadyExists,
    Corrupt,
    FerryError,
    NotFound,
    PermanentError,
    Unavailable,
)
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_content import CommitContent
from podferry.sidecar.checkpoint.commit.commit_log import NEWEST, CommitLog, SequencePlace, number_under
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committed_content import CommittedContent
from podferry.sidecar.checkpoint.commit.fencing import FencedLog
from podferry.sidecar.runtime.retry import retry
from podferry.storage.store import Body, WriteMode

log = structlog.get_logger(__name__)

Files = tuple[CommittedFile, ...]


class Committer:
    """Commits to one lineage on behalf of one agent.

    Attributes:
        store: The lineage.
        reader: Reads the lineage's commits.
        log: The commits of all agents, as far as they have been read.
        content: Which contents they have.
        identity: The agent.
        datasets: What the checkpoints are trained on; None while that is unknown.
    """

    def __init__(
        self, reader: CommitReader, identity: AgentIdentity, now: Callable[[], datetime], attempts: int = 3
    ) -> None:
        self.store, self.reader, self.identity = reader.store, reader, identity
        self.log, self.content = CommitLog(reader), CommittedContent(reader)
        self.datasets: tuple[DatasetVersion, ...] | None = None
        self._now, self._attempts = now, attempts
        self._fenced_log = FencedLog(self.log, reader.store, identity, now)
        self._lock = asyncio.Lock()

    async def write(self, name: str, body: Body) -> None:
        """Write an object of the lineage; raises `Fenced` if another agent has taken over."""
        self._fenced_log.check()
        await self.store.write(name, body)

    async def begin(self, newest: int) -> None:
        """Begin this agent's life after the commit `newest`, 0 if there is none; call it before training.

        Raises `Refused` if the destination does not create objects conditionally.
        """
        await self._fenced_log.begin(newest)

    async def commit(
        self,
        name: str,
        folder: str,
        files: Files,
        *,
        doubts: tuple[Doubt, ...] = (),
        place: SequencePlace = NEWEST,
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> Commit:
        """Commit a checkpoint whose files have all been uploaded.

        Args:
            name: The trainer's name for it.
            folder: The name and the hash of its content.
            files: All of them, sorted by name.
            doubts: Why it may be incomplete; a sure one has none.
            place: Which number it gets.
            check: Called before each try to create it, after the log was read; raises to prevent that.

        Raises:
            Fenced: Another agent has taken over; from now on nothing is written.
            Superseded: No number is free below the newer checkpoint.
            FerryError: The store's, after all attempts. Whether the checkpoint is committed is then unknown;
                committing the same content again is harmless.
        """
        async with self._lock:
            content = CommitContent(name, folder, files, doubts, self.datasets, place.late)
            return await self._commit(content, place, check)

    async def examine(self) -> None:
        """Look at the commits of other agents; raises `Fenced` if one has taken over."""
        async with self._lock:  # another commit's check and its number must see the same commits
            await self._fenced_log.refresh()

    async def _commit(
        self, content: CommitContent, place: SequencePlace, check: Callable[[], Awaitable[None]] | None
    ) -> Commit:
        while True:
            await self._fenced_log.refresh()
            commit = await self._fenced_log.find(content.folder, content.files)
            # A commit whose answer was lost is the newest of its name, unless it belongs below another one.
            if commit is not None and (place.below is not None or not self._fenced_log.is_outdated(commit)):
                break
            if check is not None:
                await check()
            if place.below is not None and place.below not in self.log.known:
                await self.log.read(place.below)
            number, reserved = self._next_number(place)
            lineage = self.store.lineage
            commit = await self._create(content.commit(lineage, number, reserved, self._now(), self.identity))
            if commit is not None:
                break
        self._fenced_log.add(commit)
        self.content.add(content.folder)
        if commit.sequence == self.log.last:
            await self._write_latest(commit)
        return commit

    def _next_number(self, place: SequencePlace) -> tuple[int, int]:
        """The number of the next commit, and how many free ones are directly below it."""
        number, lower = self.log.last + 1 + place.reserve, self.log.last
        if place.below is not None:
            number = number_under(self.log.known.get(place.below), self.log.numbers, place.between)
            lower = max((taken for taken in self.log.numbers if taken < number), default=0)
        return number, number - 1 - lower

    async def _create(self, commit: Commit) -> Commit | None:
        """The commit of this content that now has this number; None if the number has other content."""
        name, document = commit_name(commit.sequence), encode_commit(commit)
        try:
            await retry(self._attempts, lambda: self.store.write(name, document, WriteMode.CREATE))
        except AlreadyExists:
            pass
        except PermanentError as refusal:
            found = await self._read_back(commit.sequence, refusal)
            if not _is_same(found, commit):
                raise
            return found
        else:
            if self.store.destination.exclusive_create:
                return commit
        # It is ours if an answer was lost, in this try or in an earlier one, which had another `created`.
        found = await self.log.read(commit.sequence)
        return found if _is_same(found, commit) else None

    async def _read_back(self, number: int, refusal: PermanentError) -> Commit | None:
        """The commit under a number that could not be created: it exists if an earlier try took effect.

        While that is unknown, no older checkpoint may be committed: it would get a higher number.

        Raises:
            Unavailable: The store does not say.
        """
        try:
            return await self.reader.read(number)
        except (NotFound, Corrupt):
            return None
        except FerryError:
            raise Unavailable.of(f"whether commit {number} exists is unknown", str(refusal)) from refusal

    async def _write_latest(self, commit: Commit) -> None:
        try:
            await self.store.write(LATEST, encode_commit(commit))
        except FerryError as error:
            log.warning("latest.json was not updated; the commits are authoritative", reason=str(error))


def _is_same(found: Commit | None, commit: Commit) -> bool:
    """Whether a commit was found that has this content: another try had another `created`."""
    return found is not None and (found.checkpoint, found.files) == (commit.checkpoint, commit.files)

"""Reads the commits of a lineage and checks that their objects exist."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial

import structlog

from podferry.contract.destination.commit import (
    COMMITS,
    Commit,
    CommittedFile,
    commit_name,
    decode_commit,
    sequence_of,
)
from podferry.contract.destination.confidence import (
    CONFIRMED,
    confirmation_name,
    confirmed_part,
    decode_confirmation,
    with_confidence,
)
from podferry.contract.errors import Corrupt, FormatTooNew, NotFound, Problem
from podferry.contract.suggest import did_you_mean
from podferry.sidecar.checkpoint.commit.commit_history import CommitHistory
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.storage.store import Store

log = structlog.get_logger(__name__)

READ_ATTEMPTS = 3
"""How often a commit is read before it counts as damaged."""
MAX_NAMES_SHOWN = 5
CONCURRENT_STATS = 16
"""Objects of a commit that are looked for at a time."""

Confirmed = Collection[tuple[int, int | None]]
"""What is confirmed, by the names alone: sequence, and rank or None."""


async def committed_lineages(destination: Store) -> list[str]:
    """All lineages that have a commit, sorted."""
    folders = [name[:-1] for name in await destination.children() if name.endswith("/")]
    return [name for name in folders if await CommitReader(LineageStore(destination, name)).sequences()]


async def lineage_remedy(destination: Store, lineage: str) -> str:
    """What to write instead of a lineage that has no commit."""
    lineages = await committed_lineages(destination)
    known = f"Lineages there: {', '.join(lineages[:MAX_NAMES_SHOWN])}"
    return did_you_mean(lineage, lineages, known if lineages else "Nothing is committed there yet")


class CommitReader:
    """The commits of one lineage."""

    def __init__(self, store: LineageStore) -> None:
        self.store = store

    async def sequences(self) -> list[int]:
        """The sequence numbers of all commits, ascending."""
        names = await self.store.children(COMMITS)
        return sorted(number for number in map(sequence_of, names) if number is not None)

    async def read(self, sequence: int) -> Commit:
        """Read one commit.

        Raises:
            NotFound, Corrupt, FormatTooNew: It is missing, damaged or a copy of another one, or too new.
        """
        name = commit_name(sequence)
        commit = await self._load(name)
        if (commit.lineage, commit.sequence) != (self.store.lineage, sequence):
            measured = f"it names itself {commit.lineage} {commit.sequence}"
            what = f"{self.store.uri_of(name)} is a copy of another commit"
            raise Corrupt.of(what, measured, "Remove the copy")
        return commit

    async def _load(self, name: str, attempts: int = READ_ATTEMPTS) -> Commit:
        """Read again if it arrives damaged: one bad answer must not hide a newer commit."""
        try:
            return await self.store.load(name, decode_commit)
        except Corrupt:
            if attempts == 1:
                raise
        return await self._load(name, attempts - 1)

    async def confirmed(self) -> frozenset[tuple[int, int | None]]:
        """What is confirmed, by the names of the confirmations; `rate` reads those that matter."""
        names = await self.store.children(CONFIRMED)
        return frozenset(part for part in map(confirmed_part, names) if part is not None)

    async def rate(self, commit: Commit, before: Sequence[Commit], confirmed: Confirmed) -> Commit:
        """The commit with its effective confidence and the doubts that are not settled.

        Args:
            commit: As it was written.
            before: Older commits, newest first; needed only for a commit without a confidence.
            confirmed: As `confirmed` returns it.
        """
        rated = with_confidence(commit, before, ())
        parts = [] if rated.is_sure else [part for part in confirmed if part[0] == commit.sequence]
        answers = await asyncio.gather(*(self._is_confirmed(commit, rank) for _, rank in parts))
        settled = {part for part, answer in zip(parts, answers, strict=True) if answer}
        return with_confidence(commit, before, settled) if settled else rated

    async def _is_confirmed(self, commit: Commit, rank: int | None) -> bool:
        """Whether a confirmation is about this very commit: its number may be that of an earlier one."""
        try:
            found = await self.store.find(confirmation_name(commit.sequence, rank), decode_confirmation)
        except (Corrupt, FormatTooNew) as error:
            log.warning("a confirmation cannot be read", sequence=commit.sequence, reason=str(error))
            return False
        expected = (commit.sequence, commit.checkpoint, rank)
        return found is not None and (found.sequence, found.checkpoint, found.rank) == expected

    async def history(self, known: CommitHistory | None = None) -> CommitHistory:
        """List the commits; what `known`, an earlier history of this lineage, has read is not read again."""
        confirmed, numbers = await asyncio.gather(self.confirmed(), self.sequences())
        return CommitHistory(numbers, self.read, partial(self.rate, confirmed=confirmed), known)

    async def newest_first(self) -> AsyncIterator[Commit]:
        """The commits, listed now: see `CommitHistory.newest_first`."""
        history = await self.history()
        async for commit in history.newest_first():
            yield commit

    async def missing_objects(self, commit: Commit) -> list[Problem]:
        """The objects of a commit that are missing or have the wrong size; their bytes are not read."""
        problems: dict[CommittedFile, Problem] = {}

        async def check(file: CommittedFile) -> None:
            if problem := await self._object_problem(file):
                problems[file] = problem

        await for_each_limited(commit.files, check, CONCURRENT_STATS)
        return [problems[file] for file in commit.files if file in problems]

    async def _object_problem(self, file: CommittedFile) -> Problem | None:
        name = file.name if file.rank is None else f"{file.name} of rank {file.rank}"
        try:
            size = (await self.store.stat(file.object)).size
        except NotFound:
            return Problem(f"{name} is missing", str(self.store.uri_of(file.object)))
        if size == file.size:
            return None
        return Problem(f"{name} has the wrong size", f"{size} bytes, the commit says {file.size}")

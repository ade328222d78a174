"""The commits of a lineage as they come in, and what their numbers say.

A commit is created under a number that was free, by a writer who had just listed all. `Commit.room` says how
many free numbers it left below its own, so each commit tells up to which number its writer knew the log:

* up to its number, where it left no room;
* up to its `observed_sequence`, where it did: another writer may have taken a number in that room meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import msgspec
import structlog

from podferry.contract.commit import Commit
from podferry.contract.errors import Corrupt, NotFound, Superseded
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader

log = structlog.get_logger(__name__)

CONCURRENT_READS = 8


def observed_sequence(commit: Commit) -> int:
    """The number up to which its writer knew the log when it created the commit."""
    return commit.sequence - 1 - commit.room


def fenced_by(writer: str, rank: int | None, commits: Iterable[Commit]) -> Commit | None:
    """The commit by which another writer of the same rank has taken over, None where `writer` may go on.

    The other one knew of this writer, or has taken a number in the room that this writer left: who leaves
    room is draining, and gives way to who has begun. A writer that has not committed yet gives way to nobody.

    Args:
        writer: Who asks.
        rank: Its number in its training; another number, or one where this is None, never fences.
        commits: Those that nobody has looked at yet, its own newest with them, if it has one.
    """
    rivals = [commit for commit in commits if commit.rank == rank]
    own = [commit for commit in rivals if commit.writer == writer]
    if not own:
        return None
    claim = max(own, key=lambda commit: commit.sequence)
    others = [
        other
        for other in rivals
        if other.writer != writer
        and (
            observed_sequence(other) >= claim.sequence
            or observed_sequence(claim) < other.sequence < claim.sequence
        )
    ]
    return max(others, key=lambda commit: commit.sequence, default=None)


def number_under(upper: Commit | None, taken: Iterable[int]) -> int:
    """The highest free number in the room that a commit has left below its own.

    Raises:
        Superseded: There is none.
    """
    free = range(observed_sequence(upper) + 1, upper.sequence) if upper is not None else range(0)
    left = set(free).difference(taken)
    if not left:
        newer = f"commit {upper.sequence}, {upper.name}" if upper is not None else ""
        raise Superseded.of("a newer checkpoint is committed already, with no number free below it", newer)
    return max(left)


class CommitLog:
    """What is known of a lineage's commits.

    Attributes:
        numbers: Those that are taken, also by what is no commit.
        known: The commits that have been read and not forgotten, by number, without their files: there may be
            thousands of either.
    """

    def __init__(self, reader: CommitReader) -> None:
        self.numbers: set[int] = set()
        self.known: dict[int, Commit] = {}
        self._reader = reader
        self._last = 0

    @property
    def last(self) -> int:
        """The highest number that was ever seen: none is given out twice, also where its commit has gone."""
        return self._last

    async def look(self, floor: int | None = None, stop: Callable[[Commit], int] | None = None) -> None:
        """List all numbers, and read the commits above `floor` that are not known.

        Args:
            floor: What lies at or below it is not read; None for all but the newest.
            stop: Told of each commit, newest first: the floor from there on, where that is higher. A few that
                lie below it may be read all the same.

        Raises:
            FormatTooNew: A later podferry commits here.
            TemporaryError: The store did not answer.
        """
        numbers = await self._reader.sequences()
        self.numbers = set(numbers)
        self._last = max([self._last, *numbers])
        self.known = {number: self.known[number] for number in numbers if number in self.known}
        low = numbers[-1] - 1 if floor is None and numbers else floor or 0
        while batch := [number for number in reversed(numbers) if number > low][:CONCURRENT_READS]:
            await asyncio.gather(*(self.read(number) for number in batch if number not in self.known))
            found = [self.known[number] for number in batch if number in self.known]
            low = max([low, *map(stop, found)]) if stop is not None else low
            numbers = [number for number in numbers if number < batch[-1]]

    async def read(self, number: int) -> Commit | None:
        """The commit of a number that is taken, None where it is none; raises as `look` does."""
        self.numbers.add(number)
        self._last = max(self._last, number)
        try:
            commit = await self._reader.read(number)
        except (Corrupt, NotFound) as error:
            log.warning("a number is taken by no commit", sequence=number, reason=str(error))
            self.known.pop(number, None)
            return None
        self.add(commit)
        return commit

    def add(self, commit: Commit) -> None:
        """A commit that has been read, or has just been created."""
        self.numbers.add(commit.sequence)
        self.known[commit.sequence] = msgspec.structs.replace(commit, files=())
        self._last = max(self._last, commit.sequence)

    def forget(self, floor: int) -> None:
        """Drop what lies at or below a number."""
        self.known = {number: commit for number, commit in self.known.items() if number > floor}

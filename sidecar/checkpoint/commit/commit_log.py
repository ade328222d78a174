"""The commits of a lineage as one agent has read them, and what their sequence numbers prove.

An agent lists all numbers, then creates a commit under a free one. `Commit.reserved` is how many free numbers
it left directly below its own. So each commit shows up to which number its agent had seen the log:

* up to its own number if it reserved none;
* up to its `observed_sequence` if it did: another agent may have taken a reserved number since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec
import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Corrupt, NotFound, Superseded
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader

log = structlog.get_logger(__name__)

CONCURRENT_READS = 8


@dataclass(frozen=True, slots=True)
class SequencePlace:
    """Which number a commit gets: by default the next one.

    Attributes:
        reserve: How many numbers to leave free below its own, for older checkpoints committed later.
        below: The number of a newer checkpoint that has reserved some: take the highest free one.
        between: How many of these to leave free above its own, for checkpoints of an age between the two.
        late: No number is free below a newer checkpoint: the commit says that it is older.
    """

    reserve: int = 0
    below: int | None = None
    between: int = 0
    late: bool = False


NEWEST = SequencePlace()


def observed_sequence(commit: Commit) -> int:
    """The number up to which a commit's agent had seen the log when it created the commit."""
    return commit.sequence - 1 - commit.reserved


def number_under(upper: Commit | None, taken: Iterable[int], between: int = 0) -> int:
    """The highest free number that a newer commit has reserved, except for `between` others.

    If fewer are free, it is the lowest; raises `Superseded` if none is.
    """
    reserved = range(observed_sequence(upper) + 1, upper.sequence) if upper is not None else range(0)
    free = set(reserved).difference(taken)
    if not free:
        newer = f"commit {upper.sequence}, {upper.name}" if upper is not None else ""
        raise Superseded.of("a newer checkpoint is committed already, with no number free below it", newer)
    return sorted(free, reverse=True)[: between + 1][-1]


class CommitLog:
    """The commits of a lineage, as far as they have been read.

    Attributes:
        numbers: All numbers that are taken, even by objects that are not commits.
        known: Commits that were read and not forgotten, by number. Without their files: a lineage may have
            thousands of commits, and a commit thousands of files.
        last: The highest number ever seen. None is used twice, even after its commit was removed.
    """

    def __init__(self, reader: CommitReader) -> None:
        self.numbers: set[int] = set()
        self.known: dict[int, Commit] = {}
        self._reader = reader
        self.last = 0

    async def refresh(
        self, floor: int | None = None, raise_floor: Callable[[Commit], int] | None = None
    ) -> None:
        """List all numbers, and read the unknown commits above `floor`.

        Args:
            floor: Commits up to this number are not read; None reads only the newest.
            raise_floor: Called with each commit, newest first; returns a floor for the commits that follow. A
                few below it may be read anyway.

        Raises:
            FormatTooNew: A later podferry commits here.
            TemporaryError: The store did not answer.
        """
        numbers = await self._reader.sequences()
        self.numbers = set(numbers)
        self.last = max([self.last, *numbers])
        self.known = {number: self.known[number] for number in numbers if number in self.known}
        low = numbers[-1] - 1 if floor is None and numbers else floor or 0
        while batch := [number for number in reversed(numbers) if number > low][:CONCURRENT_READS]:
            await asyncio.gather(*(self.read(number) for number in batch if number not in self.known))
            found = [self.known[number] for number in batch if number in self.known]
            low = max([low, *map(raise_floor, found)]) if raise_floor is not None else low
            numbers = [number for number in numbers if number < batch[-1]]

    async def read(self, number: int) -> Commit | None:
        """The commit under a taken number, None if it cannot be read; raises as `refresh` does."""
        self.numbers.add(number)
        self.last = max(self.last, number)
        try:
            commit = await self._reader.read(number)
        except (Corrupt, NotFound) as error:
            log.warning("no readable commit has this sequence number", sequence=number, reason=str(error))
            self.known.pop(number, None)
            return None
        self.add(commit)
        return commit

    def add(self, commit: Commit) -> None:
        """Record a commit that was read or created."""
        self.numbers.add(commit.sequence)
        self.known[commit.sequence] = msgspec.structs.replace(commit, files=())
        self.last = max(self.last, commit.sequence)

    def forget(self, floor: int) -> None:
        """Drop the known commits up to a number."""
        self.known = {number: commit for number, commit in self.known.items() if number > floor}

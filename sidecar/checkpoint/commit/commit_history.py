"""The commits of a lineage at one moment: listed once, read newest first in parallel batches, each once.

A lineage may have thousands of commits, and most readers need the newest one or two.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.destination.series import series_of
from podferry.contract.errors import Corrupt, FerryError, FormatTooNew, NotFound

log = structlog.get_logger(__name__)

FIRST_BATCH = 2
"""Commits in the first batch: the newest, and the one that it is compared with."""
MAX_BATCH = 32
"""Each batch is twice as large as the one before, up to this. A commit may list thousands of files."""
LOOK_BACK = 64
"""How many older commits are searched for the one before a commit of podferry 0.1 in its series."""
REMEMBERED = 32
"""How many of the newest commits are remembered for a second reading."""


class CommitHistory:
    """The commits that existed when they were listed.

    Attributes:
        numbers: Their sequence numbers, newest first.
        damaged: Commits that were reached and are not readable, and why.
        found: By number, what was read and is remembered.
    """

    def __init__(
        self,
        numbers: Iterable[int],
        read: Callable[[int], Awaitable[Commit]],
        rate: Callable[[Commit, Sequence[Commit]], Awaitable[Commit]],
        known: CommitHistory | None = None,
    ) -> None:
        """List nothing: `CommitReader.history` does.

        Args:
            numbers: Their sequence numbers.
            read: Reads one.
            rate: Returns a commit with its effective confidence, given the one before it in its series.
            known: What it has read is not read again: commits never change.
        """
        self.numbers = tuple(sorted(numbers, reverse=True))
        self.damaged: dict[int, FerryError] = {}
        self._read, self._rate, self._batch = read, rate, FIRST_BATCH
        listed, earlier = set(self.numbers), known.found if known else {}
        self.found: dict[int, Commit | FerryError] = {
            number: found for number, found in earlier.items() if number in listed
        }

    @property
    def newest(self) -> int:
        """The highest number, 0 if there is no commit."""
        return self.numbers[0] if self.numbers else 0

    async def newest_first(self) -> AsyncIterator[Commit]:
        """The commits with their effective confidence; damaged ones are skipped with a warning.

        One of a later podferry raises `FormatTooNew` when it is reached: it must not be skipped. May be
        called several times.
        """
        for index, number in enumerate(self.numbers):
            commit = await self._readable(index)
            if commit is not None:
                yield await self._rate(commit, await self._before(index, commit))
            if index >= REMEMBERED:
                self.found.pop(number, None)

    async def _readable(self, index: int) -> Commit | None:
        number, found = self.numbers[index], await self._result(index)
        if isinstance(found, Commit):
            return found
        if not isinstance(found, Corrupt | NotFound):
            raise found
        log.warning("skipping a damaged commit", sequence=number, reason=str(found))
        if isinstance(found, Corrupt):
            self.damaged[number] = found
        return None

    async def _before(self, index: int, commit: Commit) -> list[Commit]:
        """The commit before this one in its series, if this one is of podferry 0.1 and needs it."""
        if commit.confidence is not None:
            return []
        series = series_of(commit.name)
        for older in range(index + 1, min(index + 1 + LOOK_BACK, len(self.numbers))):
            found = await self._result(older)
            if isinstance(found, Commit) and series_of(found.name) == series:
                return [found]
            if not isinstance(found, Commit | Corrupt | NotFound | FormatTooNew):
                raise found
        return []

    async def _result(self, index: int) -> Commit | FerryError:
        """A commit, or why it cannot be read; what a store did not answer is asked again next time."""
        number = self.numbers[index]
        if number not in self.found:
            batch = [one for one in self.numbers[index : index + self._batch] if one not in self.found]
            self.found.update(zip(batch, await asyncio.gather(*map(self._attempt, batch)), strict=True))
            self._batch = min(self._batch * 2, MAX_BATCH)
        found = self.found[number]
        if not isinstance(found, Commit | Corrupt):
            del self.found[number]
        return found

    async def _attempt(self, number: int) -> Commit | FerryError:
        try:
            return await self._read(number)
        except FerryError as error:
            return error

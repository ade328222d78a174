"""Reads what lies at a destination: lineages, their commits, and whether the data is there."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from podferry.contract.commit import COMMITS, Commit, commit_name, decode_commit, sequence_of
from podferry.contract.errors import Corrupt, NotFound, Problem
from podferry.storage.store import Store

log = structlog.get_logger(__name__)


CONCURRENT_READS = 3
"""Times that a commit is read before it counts as damaged."""


class CommitReader:
    """The commits below one destination."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def lineages(self) -> list[str]:
        """All lineages that have a commit, sorted."""
        folders = [name[:-1] for name in await self.store.children() if name.endswith("/")]
        return [lineage for lineage in folders if await self.sequences(lineage)]

    async def sequences(self, lineage: str) -> list[int]:
        """The numbers of a lineage's commits, ascending."""
        names = await self.store.children(f"{lineage}/{COMMITS}")
        return sorted(number for number in map(sequence_of, names) if number is not None)

    async def read(self, lineage: str, sequence: int) -> Commit:
        """One commit.

        Raises:
            NotFound, Corrupt, FormatTooNew: As the names say.
        """
        name = f"{lineage}/{commit_name(sequence)}"
        commit = await self._decoded(name)
        if (commit.lineage, commit.sequence) != (lineage, sequence):
            said = f"it says {commit.lineage} {commit.sequence}"
            raise Corrupt.of(
                f"{self.store.uri / name} is the commit of another place", said, "Remove the copy"
            )
        return commit

    async def _decoded(self, name: str) -> Commit:
        """Read again where it came damaged: a newer commit must not be passed over for a bad answer."""
        for left in reversed(range(CONCURRENT_READS)):
            try:
                return decode_commit(bytes(await self.store.read(name)), f"{self.store.uri / name}")
            except Corrupt:
                if not left:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def newest_first(self, lineage: str) -> AsyncIterator[Commit]:
        """A lineage's commits, newest first; damaged ones are passed over with a warning.

        Raises:
            FormatTooNew: What a later podferry wrote must not be passed over: it is newer.
        """
        for sequence in reversed(await self.sequences(lineage)):
            try:
                yield await self.read(lineage, sequence)
            except (Corrupt, NotFound) as error:
                log.warning("passing over a commit", lineage=lineage, sequence=sequence, reason=str(error))

    async def flaws(self, commit: Commit) -> list[Problem]:
        """What is missing or of the wrong size among a commit's objects; their bytes are not read."""
        problems = []
        for file in commit.files:
            name = f"{commit.lineage}/{file.object}"
            called = file.name if file.rank is None else f"{file.name} of rank {file.rank}"
            try:
                size = (await self.store.stat(name)).size
            except NotFound:
                problems.append(Problem(f"{called} is missing", str(self.store.uri / name)))
                continue
            if size != file.size:
                measured = f"{size} bytes, the commit says {file.size}"
                problems.append(Problem(f"{called} has the wrong size", measured))
        return problems

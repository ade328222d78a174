"""Reads what lies at a destination: lineages, their commits, and whether the data is there."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from podferry.contract.commit import COMMITS, Commit, commit_name, decode_commit, sequence_of
from podferry.contract.errors import Corrupt, NotFound, Problem
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.store import Store

log = structlog.get_logger(__name__)


CONCURRENT_READS = 3
"""Times that a commit is read before it counts as damaged."""


async def committed_lineages(destination: Store) -> list[str]:
    """All lineages that have a commit, sorted."""
    folders = [name[:-1] for name in await destination.children() if name.endswith("/")]
    return [name for name in folders if await CommitReader(LineageStore(destination, name)).sequences()]


class CommitReader:
    """The commits of one lineage."""

    def __init__(self, store: LineageStore) -> None:
        self.store = store

    @property
    def lineage(self) -> str:
        """The lineage's name."""
        return self.store.lineage

    async def sequences(self) -> list[int]:
        """The sequence numbers of all commits, ascending."""
        names = await self.store.children(COMMITS)
        return sorted(number for number in map(sequence_of, names) if number is not None)

    async def read(self, sequence: int) -> Commit:
        """One commit.

        Raises:
            NotFound, Corrupt, FormatTooNew: As the names say.
        """
        name = commit_name(sequence)
        commit = await self._decoded(name)
        if (commit.lineage, commit.sequence) != (self.lineage, sequence):
            said = f"it says {commit.lineage} {commit.sequence}"
            raise Corrupt.of(
                f"{self.store.uri_of(name)} is the commit of another place", said, "Remove the copy"
            )
        return commit

    async def _decoded(self, name: str) -> Commit:
        """Read again where it came damaged: a newer commit must not be passed over for a bad answer."""
        for left in reversed(range(CONCURRENT_READS)):
            try:
                return await self.store.load(name, decode_commit)
            except Corrupt:
                if not left:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def newest_first(self) -> AsyncIterator[Commit]:
        """The commits, newest first; damaged ones are passed over with a warning.

        Raises:
            FormatTooNew: What a later podferry wrote must not be passed over: it is newer.
        """
        for sequence in reversed(await self.sequences()):
            try:
                yield await self.read(sequence)
            except (Corrupt, NotFound) as error:
                log.warning(
                    "passing over a commit", lineage=self.lineage, sequence=sequence, reason=str(error)
                )

    async def flaws(self, commit: Commit) -> list[Problem]:
        """What is missing or of the wrong size among a commit's objects; their bytes are not read."""
        problems = []
        for file in commit.files:
            called = file.name if file.rank is None else f"{file.name} of rank {file.rank}"
            try:
                size = (await self.store.stat(file.object)).size
            except NotFound:
                problems.append(Problem(f"{called} is missing", str(self.store.uri_of(file.object))))
                continue
            if size != file.size:
                measured = f"{size} bytes, the commit says {file.size}"
                problems.append(Problem(f"{called} has the wrong size", measured))
        return problems

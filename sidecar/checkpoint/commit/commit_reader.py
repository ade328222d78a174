"""Reads the commits of a lineage and checks that their objects exist."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from podferry.contract.destination.commit import COMMITS, Commit, commit_name, decode_commit, sequence_of
from podferry.contract.errors import Corrupt, NotFound, Problem
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.store import Store

log = structlog.get_logger(__name__)

READ_ATTEMPTS = 3
"""How often a commit is read before it counts as damaged."""


async def committed_lineages(destination: Store) -> list[str]:
    """All lineages that have a commit, sorted."""
    folders = [name[:-1] for name in await destination.children() if name.endswith("/")]
    return [name for name in folders if await CommitReader(LineageStore(destination, name)).sequences()]


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

    async def newest_first(self) -> AsyncIterator[Commit]:
        """The commits, newest first; damaged ones are skipped with a warning.

        One of a later podferry raises `FormatTooNew`: it is newer and must not be skipped.
        """
        for sequence in reversed(await self.sequences()):
            try:
                yield await self.read(sequence)
            except (Corrupt, NotFound) as error:
                reason, lineage = str(error), self.store.lineage
                log.warning("skipping a damaged commit", lineage=lineage, sequence=sequence, reason=reason)

    async def missing_objects(self, commit: Commit) -> list[Problem]:
        """The objects of a commit that are missing or have the wrong size; their bytes are not read."""
        problems = []
        for file in commit.files:
            name = file.name if file.rank is None else f"{file.name} of rank {file.rank}"
            try:
                size = (await self.store.stat(file.object)).size
            except NotFound:
                problems.append(Problem(f"{name} is missing", str(self.store.uri_of(file.object))))
                continue
            if size != file.size:
                measured = f"{size} bytes, the commit says {file.size}"
                problems.append(Problem(f"{name} has the wrong size", measured))
        return problems

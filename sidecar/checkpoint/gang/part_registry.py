"""Reads and writes the parts of a lineage's checkpoints."""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.destination.rank_parts import (
    PARTS,
    RankPart,
    decode_part,
    part_name,
    series_and_position,
)
from podferry.contract.errors import Changed, Corrupt
from podferry.contract.versioned_json import encode_checksummed
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader

log = structlog.get_logger(__name__)


class PartRegistry:
    """The parts of one lineage."""

    def __init__(self, reader: CommitReader) -> None:
        self._reader, self._store = reader, reader.store

    async def names(self) -> list[str]:
        """The checkpoints that have parts."""
        return [folder.rstrip("/") for folder in await self._store.children(PARTS)]

    async def of(self, name: str) -> dict[int, RankPart]:
        """The readable parts of a checkpoint, by rank."""
        ranks = [child.removesuffix(".json") for child in await self._store.children(f"{PARTS}/{name}")]
        parts = await asyncio.gather(*(self.read(name, int(rank)) for rank in ranks if rank.isdecimal()))
        return {part.rank: part for part in parts if part is not None}

    async def read(self, name: str, rank: int) -> RankPart | None:
        """A rank's part, or None if it does not exist or is damaged; raises `FormatTooNew` if it is newer."""
        try:
            part = await self._store.find(part_name(name, rank), decode_part)
        except Corrupt as error:
            log.warning("a part cannot be read", name=name, rank=rank, reason=str(error))
            return None
        if part is None or (part.lineage, part.name, part.rank) != (self._store.lineage, name, rank):
            return None
        return part

    async def write(self, part: RankPart) -> None:
        """Write a rank's part; it replaces an earlier one."""
        await self._store.write(part_name(part.name, part.rank), encode_checksummed(part))

    async def sweep(self, commit: Commit) -> None:
        """Remove the parts that a commit contains or supersedes: parts keep data from being removed.

        A part that another agent writes at this moment may be removed, too; that agent writes it again.
        """
        series, position = series_and_position(commit.name)
        for name in await self.names():
            other_series, other_position = series_and_position(name)
            if other_series == series and other_position <= position:
                obsolete = [part for part in (await self.of(name)).values() if part.base < commit.sequence]
                await self._store.delete(part_name(name, part.rank) for part in obsolete)

    async def check_references(self, part: RankPart) -> None:
        """Make sure that a commit still lists the data that a part refers to, so that it stays.

        Write the part first: the garbage collector deletes commits before it reads the parts.

        Raises:
            Changed: It was removed.
        """
        referenced = {file.object for file in part.files if not file.object.startswith(f"{part.folder}/")}
        if not referenced:
            return
        async for commit in self._reader.newest_first():
            referenced -= {file.object for file in commit.files}
            if not referenced:
                return
        await self.write(msgspec.structs.replace(part, epoch=""))
        names = ", ".join(sorted(referenced)[:5])
        raise Changed.of("data that a checkpoint refers to has been removed", names)

"""Reads and writes the parts of a lineage's checkpoints."""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from podferry.contract.commit import Commit
from podferry.contract.errors import Changed, Corrupt, NotFound
from podferry.contract.rank_parts import (
    PARTS,
    RankPart,
    decode_part,
    encode_rank_document,
    part_name,
    series_and_position,
)
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
        """The parts of a checkpoint that are there and can be read, by rank."""
        children = await self._store.children(f"{PARTS}/{name}")
        texts = [text.removesuffix(".json") for text in children]
        ranks = [int(text) for text in texts if text.isdecimal()]
        found = await asyncio.gather(*(self.read(name, rank) for rank in ranks))
        return {part.rank: part for part in found if part is not None}

    async def read(self, name: str, rank: int) -> RankPart | None:
        """A rank's part; None where there is none that can be read.

        Raises:
            FormatTooNew: A later podferry wrote it.
        """
        try:
            part = await self._store.load(part_name(name, rank), decode_part)
        except NotFound:
            return None
        except Corrupt as error:
            log.warning("a part cannot be read", name=name, rank=rank, reason=str(error))
            return None
        return part if (part.lineage, part.name, part.rank) == (self._store.lineage, name, rank) else None

    async def write(self, part: RankPart) -> None:
        """Write a rank's part in place of the one before."""
        await self._store.write(part_name(part.name, part.rank), encode_rank_document(part))

    async def sweep(self, commit: Commit) -> None:
        """Remove the parts that a commit has made real, or too late: they keep data from being removed.

        A part that another agent writes at this moment may go with them; its writer looks after it.
        """
        kind, place = series_and_position(commit.name)
        for name in await self.names():
            other = series_and_position(name)
            if other[0] == kind and other[1] <= place:
                parts = (await self.of(name)).values()
                late = [part for part in parts if part.base < commit.sequence]
                await self._store.delete(part_name(name, part.rank) for part in late)

    async def check_references(self, part: RankPart) -> None:
        """Whether what a part refers to is still listed: it stays then.

        Who removes commits looks at the parts after it, so this one must have been written before.

        Raises:
            Changed: It has been removed.
        """
        referred = {file.object for file in part.files if not file.object.startswith(f"{part.folder}/")}
        if not referred:
            return
        async for commit in self._reader.newest_first():
            referred -= {file.object for file in commit.files}
            if not referred:
                return
        await self.write(msgspec.structs.replace(part, generation=""))
        raise Changed.of("data that a checkpoint refers to has been removed", ", ".join(sorted(referred)[:5]))

"""What the objects of a dataset become in the stage: files as they are, members of a pack, archives unpacked.

Few datasets have any of the latter two: what handles them is loaded where there are some.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from podferry.contract.errors import TemporaryError
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.spec import Unpack
from podferry.sidecar.archive.records import UnpackRecords, replace_with_members
from podferry.sidecar.archive.rules import Archive, SpaceBudget, archives_of
from podferry.sidecar.fetch.plan import FetchPlan, plan_fetch
from podferry.sidecar.fetch.range_reader import FetchContext
from podferry.sidecar.pack.reader import Pack
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.staging.volume_capacity import measure


class Materializer:
    """What one pod wants of a dataset.

    Args:
        part: The wanted files; of a pack, its members.
        pack: Where these lie.
        unpack: Which archives are unpacked.
        claims: The directory that says what fills the stage.
    """

    def __init__(self, part: Manifest, pack: Pack | None, unpack: Unpack, claims: Path) -> None:
        self._part, self._pack, self._claims = part, pack, claims
        self._archives = archives_of(part.entries, unpack) if pack is None else ()
        self._records: UnpackRecords | None = None
        self._members: tuple[Entry, ...] = ()

    def claim(self, stage: StagingDir) -> frozenset[str]:
        """Claim a stage for it; the names of the files, and of the archives, that it holds whole.

        Raises:
            Refused: See `StagingDir.claim`.
        """
        self._records = UnpackRecords(stage.root, self._claims)
        whole = self._records.find_unpacked(self._archives)
        kept = stage.claim(
            replace_with_members(self._part, self._archives, whole), self._records.member_names
        )
        done = self._records.keep(whole, kept)
        self._members = tuple(member for name in done for member in whole[name])
        return done.union(entry.name for entry in self._part.entries if entry.name in kept)

    async def unpack(self, plan: FetchPlan, way: FetchContext) -> FetchPlan:
        """Bring what of a plan is no object of its own; the plan of the rest.

        Raises:
            Changed, Corrupt, NotFound, Refused, TemporaryError: See `PackExtractor.run`,
            `ArchiveUnpacker.run`.
        """
        packed = self._pack.names if self._pack else frozenset()
        names = packed.union(archive.name for archive in self._archives)
        if not names:
            return plan
        plain = tuple(entry for entry in self._part.entries if entry.name not in names)
        kept = frozenset(entry.name for entry in plan.kept)
        rest = plan_fetch(msgspec.structs.replace(self._part, entries=plain), kept, way.settings)
        try:
            await self._cut_out(packed.intersection(entry.name for entry in plan.files), way)
            await self._unpack([one for one in self._archives if one.name not in kept], rest, way)
        except (TemporaryError, asyncio.CancelledError):
            raise
        except BaseException:  # whatever else it is, the next start has nothing to go on from
            way.stage.finish()
            raise
        return rest

    async def _cut_out(self, wanted: frozenset[str], way: FetchContext) -> None:
        if self._pack is not None and wanted:
            from podferry.sidecar.pack.extractor import PackExtractor  # noqa: PLC0415

            await PackExtractor(self._pack, wanted, way).run()

    async def _unpack(self, archives: Sequence[Archive], rest: FetchPlan, way: FetchContext) -> None:
        if archives and self._records is not None:
            from podferry.sidecar.archive.unpacker import ArchiveUnpacker  # noqa: PLC0415

            room = SpaceBudget(measure(way.stage.root), [entry.size for entry in rest.files])
            taken = [entry.name for entry in (*rest.files, *rest.kept, *self._members)]
            await ArchiveUnpacker(archives, way, self._records, taken, room).run()

"""Turns the objects of a dataset into staged files: as they are, members of a pack, or unpacked archives.

Few datasets have packs or archives, so their code is imported only if needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from podferry.contract.errors import TemporaryError
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.spec import Unpack
from podferry.sidecar.archive.unpack_records import UnpackRecords, replace_with_members
from podferry.sidecar.archive.unpack_rules import Archive, SpaceBudget, archives_of
from podferry.sidecar.fetch.plan import FetchPlan, plan_fetch
from podferry.sidecar.fetch.range_reader import FetchContext
from podferry.sidecar.pack.reader import Pack
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.staging.volume_capacity import measure


class Materializer:
    """Claims a staging directory for one pod's shard of a dataset, and unpacks into it.

    1. `claim`.
    2. `unpack`, which returns the plan of what is to be fetched as it is.

    Args:
        shard: The pod's files; of a pack, its members.
        pack: The pack that contains these members.
        unpack: Which archives to unpack.
        staging: The staging directory.
        ownership: The directory of its ownership record.
    """

    def __init__(
        self, shard: Manifest, pack: Pack | None, unpack: Unpack, staging: StagingDir, ownership: Path
    ) -> None:
        self._shard, self._pack, self._staging = shard, pack, staging
        self._archives = archives_of(shard.entries, unpack) if pack is None else ()
        self._records = UnpackRecords(staging.root, ownership)
        self._members: tuple[Entry, ...] = ()

    def claim(self) -> frozenset[str]:
        """Claim as `StagingDir.claim` does; the names of the complete files and archives in place."""
        unpacked = self._records.find_unpacked(self._archives)
        manifest = replace_with_members(self._shard, self._archives, unpacked)
        kept = self._staging.claim(manifest, self._records.member_names)
        done = self._records.keep(unpacked, kept)
        self._members = tuple(member for name in done for member in unpacked[name])
        return done.union(entry.name for entry in self._shard.entries if entry.name in kept)

    async def unpack(self, plan: FetchPlan, context: FetchContext) -> FetchPlan:
        """Fetch the members of packs and archives; the plan of the other files.

        Raises:
            Changed, Corrupt, NotFound, Refused, TemporaryError: See `PackExtractor.run`,
            `ArchiveUnpacker.run`.
        """
        packed = self._pack.names if self._pack else frozenset()
        names = packed.union(archive.name for archive in self._archives)
        if not names:
            return plan
        plain = tuple(entry for entry in self._shard.entries if entry.name not in names)
        kept = frozenset(entry.name for entry in plan.kept)
        rest = plan_fetch(msgspec.structs.replace(self._shard, entries=plain), kept, context.settings)
        members = packed.intersection(entry.name for entry in plan.files)
        archives = [archive for archive in self._archives if archive.name not in kept]
        try:
            if self._pack is not None and members:
                from podferry.sidecar.pack.extractor import PackExtractor  # noqa: PLC0415

                await PackExtractor(self._pack, members, context).run()
            if archives:
                await self._unpack(archives, rest, context)
        except (TemporaryError, asyncio.CancelledError):
            raise
        except BaseException:  # after any other error, the next start cannot resume
            context.stage.remove_partials()
            raise
        return rest

    async def _unpack(self, archives: Sequence[Archive], rest: FetchPlan, context: FetchContext) -> None:
        from podferry.sidecar.archive.unpacker import ArchiveUnpacker  # noqa: PLC0415

        space = SpaceBudget(measure(context.stage.root), [entry.size for entry in rest.files])
        reserved = [entry.name for entry in (*rest.files, *rest.kept, *self._members)]
        await ArchiveUnpacker(archives, context, self._records, reserved, space).run()

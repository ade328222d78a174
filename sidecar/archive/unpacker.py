"""Unpacks archives while they stream: several at once, each read in order with a few ranges prefetched.

The event loop fetches; one thread per archive decompresses and writes partial files. Once an archive is read
completely and its names are free, it is recorded, and its members get their names.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from podferry.contract.errors import Problem, Refused
from podferry.contract.manifest import Entry
from podferry.sidecar.archive.archive_reader import ArchiveReader
from podferry.sidecar.archive.member_writer import MemberWriter
from podferry.sidecar.archive.unpack_records import UnpackRecords
from podferry.sidecar.archive.unpack_rules import (
    MAX_NAMES_SHOWN,
    Archive,
    NameRegistry,
    SpaceBudget,
)
from podferry.sidecar.fetch.range_reader import FetchContext
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.sidecar.runtime.cpu_limit import cores

MAX_CONCURRENCY = 4
"""Archives; fewer on fewer cores: each takes one to decompress, and zstd up to 128 MiB for its window."""
RENAMES_PER_TURN = 64
"""Before other tasks run: a few milliseconds."""
PARTIAL_PREFIX = "unpack-"


class ArchiveUnpacker:
    """Unpacks the archives of one dataset.

    Args:
        archives: Those not unpacked yet.
        context: How their bytes are fetched.
        records: Where unpacked archives are recorded.
        names: All other names in the staging directory.
        budget: The space for members.
    """

    def __init__(
        self,
        archives: Sequence[Archive],
        context: FetchContext,
        records: UnpackRecords,
        names: Iterable[str],
        budget: SpaceBudget,
    ) -> None:
        self._archives = sorted(archives, key=lambda archive: (-archive.entry.size, archive.name))
        self._stage, self._records, self._budget = context.stage, records, budget
        self._names = NameRegistry(names)
        self._reader = ArchiveReader(context.store, context.settings, context.progress)
        self._progress = context.progress
        self._started = 0

    async def run(self) -> None:
        """Unpack all archives. A failure stops all; an incomplete archive leaves nothing behind.

        Raises:
            Corrupt: An archive is damaged, or of another format.
            Refused: It contains members that must not be unpacked or whose names are taken, or it exceeds the
                space budget.
            Changed, NotFound, TemporaryError: See `RangeReader.fetch`.
        """
        self._stage.remove_partials(PARTIAL_PREFIX)
        concurrency = min(MAX_CONCURRENCY, cores())
        try:
            with ThreadPoolExecutor(concurrency, "unpack") as threads:
                unpack = partial(self._unpack, threads)
                await for_each_limited(self._archives, unpack, concurrency)
        finally:
            self._stage.remove_partials(PARTIAL_PREFIX)

    async def _unpack(self, threads: ThreadPoolExecutor, archive: Archive) -> None:
        self._started += 1
        writer = MemberWriter(archive, self._stage, self._budget, f"{PARTIAL_PREFIX}{self._started}-")
        await self._reader.read(writer, threads)
        await self._publish(archive, writer)
        self._progress(1, 0)

    async def _publish(self, archive: Archive, writer: MemberWriter) -> None:
        self._names.register(archive, [member.name for member in writer.members])
        self._refuse_existing(archive, writer.members)
        try:
            self._records.add(archive, writer.members)
            for index, member in enumerate(writer.members):
                self._refuse_existing(archive, (member,))
                self._stage.publish(writer.partial_path(index), member)
                if index % RENAMES_PER_TURN == 0:
                    await asyncio.sleep(0)
        except OSError as error:
            what = f"the members of the archive {archive.name} cannot be renamed into place"
            raise Refused.of(what, str(error), "Check the volume and its permissions") from error

    def _refuse_existing(self, archive: Archive, members: Sequence[Entry]) -> None:
        """Never replace a file, be it the trainer's or, if letter case is ignored, another member."""
        what = f"a member of the archive {archive.name} has the name of an existing file"
        remedy = "Empty the dataset path, choose another, or rewrite the archive with other names"
        existing = (one.name for one in members if os.path.lexists(f"{self._stage.root}/{one.name}"))
        Refused.raise_any([Problem(what, repr(name), remedy) for name in islice(existing, MAX_NAMES_SHOWN)])

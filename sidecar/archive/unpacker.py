"""Unpacks archives into the stage while they stream: a few at once, each read in order, some ranges ahead.

The event loop fetches, a thread of each archive's own decompresses and writes aside. Once an archive is whole
and its names are free, it is noted, and its members get their names.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from podferry.contract.errors import Problem, Refused
from podferry.contract.manifest import Entry
from podferry.contract.quantity import format_bytes
from podferry.sidecar.archive.member_writer import MemberWriter
from podferry.sidecar.archive.records import UnpackRecords
from podferry.sidecar.archive.rules import MAX_NAMES_SHOWN, Archive, ArchiveKind, NameRegistry, SpaceBudget
from podferry.sidecar.archive.tar import unpack_tar
from podferry.sidecar.archive.zip import MAX_DIRECTORY_BYTES, NeedEarlierBytesError, ZipTail, ZipUnpacker
from podferry.sidecar.fetch.byte_stream import ByteStream
from podferry.sidecar.fetch.range_reader import FetchContext, RangeReader
from podferry.sidecar.fetch.stream_feeder import feed
from podferry.sidecar.runtime.concurrency import for_each_limited

CONCURRENCY = max(1, min(4, os.cpu_count() or 1))
"""Archives: each takes a core to decompress, and zstd up to 128 MiB for its window."""
PREFETCH_DEPTH = 4
"""Ranges of one archive that are fetched at once: 32 MiB, so that two archives share the bytes in flight."""
TAIL = 1 << 17
"""Bytes at the end of a zip archive that are read first: a directory of a thousand members."""
SLICE = 64
"""Files that are renamed before others have their turn: a few milliseconds."""
MINE = "unpack-"
"""What the names of members aside begin with."""


class ArchiveUnpacker:
    """One run over the archives of a dataset.

    Args:
        archives: What is still to be unpacked.
        way: How their bytes get into the stage.
        records: Notes which have been unpacked.
        taken: The names that the stage will hold besides.
        room: What there is room for.
    """

    def __init__(
        self,
        archives: Sequence[Archive],
        way: FetchContext,
        records: UnpackRecords,
        taken: Iterable[str],
        room: SpaceBudget,
    ) -> None:
        self._archives = sorted(archives, key=lambda archive: (-archive.entry.size, archive.name))
        self._stage, self._records, self._room = way.stage, records, room
        self._taken = NameRegistry(taken)
        self._ranges = RangeReader(way.store, way.settings)
        self._range_bytes = way.settings.range_bytes
        self._progress = way.progress
        self._begun = 0

    async def run(self) -> None:
        """Unpack everything. A failure stops everything; of an archive that is not whole nothing is left.

        Raises:
            Corrupt: An archive is damaged, or no archive.
            Refused: It holds what must not be unpacked, or names that others have, or there is no room.
            Changed, NotFound, TemporaryError: See `Store.read`.
        """
        self._clear()
        try:
            with ThreadPoolExecutor(CONCURRENCY, "unpack") as self._threads:
                await for_each_limited(self._archives, self._unpack, CONCURRENCY)
        finally:
            self._clear()

    def _clear(self) -> None:
        for path in self._stage.aside.glob(MINE + "*"):
            path.unlink()

    async def _unpack(self, archive: Archive) -> None:
        self._begun += 1
        aside = MemberWriter(archive, self._stage, self._room, f"{MINE}{self._begun}-")
        loop = asyncio.get_running_loop()
        source = ByteStream(lambda count: loop.call_soon_threadsafe(self._ranges.give, count))
        if archive.kind is ArchiveKind.ZIP:
            directory = await self._directory(archive)
            directory.check(aside)
            start, work = directory.start, partial(directory.unpack, aside, source)
        else:
            start, work = 0, partial(unpack_tar, aside, source)
        await self._stream(archive, source, start, work)
        await self._admit(archive, aside)
        self._progress(1, start)  # nobody needs what lies before the first member

    async def _stream(
        self, archive: Archive, source: ByteStream, start: int, work: Callable[[], None]
    ) -> None:
        """Let a thread read an archive; it has ended when this returns, however that comes about."""
        ranges = (self._range(archive, at) for at in range(start, archive.entry.size, self._range_bytes))
        reading = asyncio.get_running_loop().run_in_executor(self._threads, work)
        await feed(source, ranges, reading, PREFETCH_DEPTH)

    async def _range(self, archive: Archive, start: int) -> memoryview:
        length = min(self._range_bytes, archive.entry.size - start)
        data = await self._ranges.fetch(archive.entry, start, length)
        self._progress(0, length)
        return data

    async def _directory(self, archive: Archive) -> ZipUnpacker:
        size = archive.entry.size
        start = max(0, size - TAIL)
        while size - start <= MAX_DIRECTORY_BYTES:
            data = await self._ranges.fetch(archive.entry, start, size - start)
            try:
                return await asyncio.to_thread(ZipUnpacker, archive, ZipTail(size, start, data))
            except NeedEarlierBytesError as sooner:
                start = sooner.position
            finally:
                self._ranges.give(len(data))
        what = f"the directory of the archive {archive.name} is too long"
        measured = (
            f"{format_bytes(size - start)} or more; {format_bytes(MAX_DIRECTORY_BYTES)} are read at most"
        )
        raise Refused.of(what, measured, "Divide it into smaller archives, or use podferry dataset pack")

    async def _admit(self, archive: Archive, aside: MemberWriter) -> None:
        self._taken.take(archive, [member.name for member in aside.members])
        self._check_free(archive, aside.members)
        try:
            self._records.add(archive, aside.members)
            for index, member in enumerate(aside.members):
                self._check_free(archive, (member,))
                self._stage.admit(aside.path(index), member)
                if index % SLICE == 0:
                    await asyncio.sleep(0)
        except OSError as error:
            what = f"the members of the archive {archive.name} cannot get their names"
            raise Refused.of(what, str(error), "Check the volume and its permissions") from error

    def _check_free(self, archive: Archive, members: Sequence[Entry]) -> None:
        """Nothing that is there is ever replaced.

        Neither a file of the trainer's own nor, where the case of letters does not count, another member.
        """
        what = f"a member of the archive {archive.name} has the name of a file that is there already"
        remedy = "Empty the dataset path, choose another, or write the archive anew with other names"
        held = (one.name for one in members if os.path.lexists(f"{self._stage.root}/{one.name}"))
        Refused.raise_any([Problem(what, repr(name), remedy) for name in islice(held, MAX_NAMES_SHOWN)])

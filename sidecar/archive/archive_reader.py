"""Reads one archive as a stream: ranges are prefetched on the event loop, a thread unpacks them in order."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from podferry.contract.errors import Refused
from podferry.contract.quantity import format_bytes
from podferry.sidecar.archive.member_writer import MemberReceiver
from podferry.sidecar.archive.tar import unpack_tar
from podferry.sidecar.archive.unpack_rules import Archive, ArchiveKind
from podferry.sidecar.archive.zip import MAX_DIRECTORY_BYTES, NeedEarlierBytesError, ZipTail, ZipUnpacker
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.range_reader import RangeReader
from podferry.sidecar.fetch.source import Progress
from podferry.sidecar.fetch.stream_feeder import feed
from podferry.storage.store import Store

PREFETCH_DEPTH = 4
"""Ranges per archive: 32 MiB, so that two archives share the bytes in flight."""
TAIL_BYTES = 1 << 17
"""Of a zip archive, fetched first: a directory of a thousand members."""


class ArchiveReader:
    """Reads archives of one store.

    Args:
        store: Holds the archives.
        settings: Length of a range, and bytes in flight.
        progress: Called as bytes arrive.
    """

    def __init__(self, store: Store, settings: PrefetchSettings, progress: Progress) -> None:
        self._ranges = RangeReader(store, settings)
        self._range_bytes = settings.range_bytes
        self._progress = progress

    async def read(self, receiver: MemberReceiver, threads: ThreadPoolExecutor) -> None:
        """Read an archive to its end, and give its members to `receiver`, in one of the threads.

        Raises:
            Corrupt: The archive is damaged, or of another format.
            Refused: It contains members that must not be unpacked, or the receiver refuses one.
            Changed, NotFound, TemporaryError: See `RangeReader.fetch`.
        """
        archive = receiver.archive
        source = self._ranges.open_stream()
        if archive.kind is ArchiveKind.ZIP:
            unpacker = await self._open_zip(archive)
            unpacker.check(receiver)
            start, work = unpacker.start, partial(unpacker.unpack, receiver, source)
        else:
            start, work = 0, partial(unpack_tar, receiver, source)
        # The thread has ended when `feed` returns or raises.
        unpacking = asyncio.get_running_loop().run_in_executor(threads, work)
        ranges = (self._range(archive, at) for at in range(start, archive.entry.size, self._range_bytes))
        await feed(source, ranges, unpacking, PREFETCH_DEPTH)
        self._progress(0, start)  # bytes before the first member are not fetched

    async def _range(self, archive: Archive, start: int) -> memoryview:
        length = min(self._range_bytes, archive.entry.size - start)
        data = await self._ranges.fetch(archive.entry, start, length)
        self._progress(0, length)
        return data

    async def _open_zip(self, archive: Archive) -> ZipUnpacker:
        size = archive.entry.size
        start = max(0, size - TAIL_BYTES)
        while size - start <= MAX_DIRECTORY_BYTES:
            data = await self._ranges.fetch(archive.entry, start, size - start)
            try:
                return await asyncio.to_thread(ZipUnpacker, archive, ZipTail(size, start, data))
            except NeedEarlierBytesError as needed:
                start = needed.position
            finally:
                self._ranges.release(len(data))
        what = f"the directory of the archive {archive.name} is too long"
        measured = (
            f"{format_bytes(size - start)} or more; at most {format_bytes(MAX_DIRECTORY_BYTES)} are read"
        )
        raise Refused.of(what, measured, "Divide it into smaller archives, or use podferry dataset pack")

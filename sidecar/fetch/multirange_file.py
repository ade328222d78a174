"""A large file that is fetched in ranges: verified once complete, and repaired if it does not match."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from podferry.sidecar.fetch.partial_file import PartialFile, WrittenRange
from podferry.sidecar.fetch.range_checksums import RangeChecksums
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.storage.checksum.checksums import Checksum, ChecksumKind, crc


class RangedFile:
    """One file. Calls: 1. `add` until it returns True, 2. `matches`, 3. `repair` unless it matches.

    Args:
        partial: The file on disk.
        stage: Where it is written.
        checksum: The expected one, if the store states it.

    Attributes:
        entry: What it becomes.
    """

    def __init__(self, partial: PartialFile, stage: StageWriter, checksum: Checksum | None) -> None:
        self.partial, self.entry = partial, partial.entry
        self._stage = stage
        self._checksums: RangeChecksums | None = None
        if checksum is not None:
            self.expect(checksum)

    @property
    def kind(self) -> ChecksumKind | None:
        """The checksum to compute of its ranges, if any."""
        return self._checksums.kind if self._checksums is not None else None

    def expect(self, checksum: Checksum) -> None:
        """Set the expected checksum, unless it is already set."""
        if self._checksums is None:
            self._checksums = RangeChecksums(checksum, self.entry.size, self.partial.path)
            for written in self.partial.written.values():
                self._add_checksum(self._checksums, written)

    def add(self, written: WrittenRange) -> bool:
        """Record a written range, or raise `OSError`; whether the file is complete."""
        self.partial.record(written)
        if self._checksums is not None:
            self._add_checksum(self._checksums, written)
        return self.partial.complete

    def written_range(self, start: int, data: memoryview) -> WrittenRange:
        """What to record of a range."""
        return WrittenRange(start, len(data), self.kind or "", crc(self.kind, data) if self.kind else 0)

    def matches(self) -> bool:
        """Whether the checksum matches, as far as the ranges' show; False if the file must be read."""
        if self._checksums is None:
            return True
        return self.kind == self._checksums.expected.kind and self._checksums.matches()

    async def repair(self, fetch: Callable[[int, int], Awaitable[memoryview]]) -> None:
        """Fetch damaged ranges again, by (start, length); raises `Corrupt` if the checksum never matches."""
        checksums = self._checksums
        if checksums is None:
            return
        refetches = checksums.refetches()
        # In a thread: a hash reads the complete file, two seconds per GiB.
        while (span := await asyncio.to_thread(next, refetches, None)) is not None:
            data = await fetch(*span)
            await asyncio.to_thread(self._stage.write, self.partial.path, data, span[0])
            self.add(self.written_range(span[0], data))
        if not await asyncio.to_thread(checksums.matches):
            raise checksums.error(self.entry.name)

    def _add_checksum(self, checksums: RangeChecksums, written: WrittenRange) -> None:
        value = written.crc
        if written.kind != checksums.kind:  # an earlier start wrote it without this checksum
            with self.partial.path.open("rb", buffering=0) as file:
                file.seek(written.start)
                value = crc(checksums.kind, file.read(written.length))
        checksums.add(written.start, written.length, value)

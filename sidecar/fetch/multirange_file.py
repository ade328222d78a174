"""A large file that is fetched in ranges: verified once complete, and repaired if it does not match."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from podferry.sidecar.fetch.partial_file import PartialFile, WrittenRange
from podferry.sidecar.fetch.range_checksums import RangeChecksums
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.storage.checksum.checksums import Checksum, ChecksumKind, crc, fetched_range_kind


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
        self._hashing: asyncio.Future[bool] | None = None
        if checksum is not None:
            self.expect(checksum)

    @property
    def has_checksum(self) -> bool:
        """Whether the store has stated one: no mixture of two versions would match."""
        return self._checksums is not None

    @property
    def kind(self) -> ChecksumKind | None:
        """The checksum to compute of its ranges while they arrive, if any."""
        return fetched_range_kind(self._checksums.expected) if self._checksums is not None else None

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
            if self.kind is None and not self.partial.complete:
                self._hash_ahead(self._checksums)
        return self.partial.complete

    def written_range(self, start: int, data: memoryview, kind: ChecksumKind | None = None) -> WrittenRange:
        """What to record of a range, with its checksum of a kind; by default `self.kind`."""
        kind = kind or self.kind
        return WrittenRange(start, len(data), kind or "", crc(kind, data) if kind else 0)

    def matches(self) -> bool:
        """Whether the checksum matches, as far as the ranges' show; False if the file must be read."""
        if self._checksums is None:
            return True
        return self.kind is not None and self._checksums.is_known() and self._checksums.matches()

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
            self.add(self.written_range(span[0], data, checksums.kind))
        if not await asyncio.to_thread(checksums.matches):
            raise checksums.error(self.entry.name)

    def _add_checksum(self, checksums: RangeChecksums, written: WrittenRange) -> None:
        # It may have been written without this checksum: by an earlier start, or because a hash decides.
        value = written.crc if written.kind == checksums.kind else None
        checksums.add(written.start, written.length, value)

    def _hash_ahead(self, checksums: RangeChecksums) -> None:
        """Hash what has arrived, in one thread at a time: at the end, little is left to do."""
        if self._hashing is None:
            self._hashing = asyncio.get_running_loop().run_in_executor(None, checksums.hash_ahead)
            self._hashing.add_done_callback(self._hashed)

    def _hashed(self, hashing: asyncio.Future[bool]) -> None:
        self._hashing = None
        # An error shows again when the complete file is verified.
        more = not hashing.cancelled() and hashing.exception() is None and hashing.result()
        if more and self._checksums is not None and not self.partial.complete:
            self._hash_ahead(self._checksums)

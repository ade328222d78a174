"""A large file on its way: it comes in ranges, must add up to what its store says, and is mended else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from podferry.sidecar.fetch.partial_file import PartialFile, WrittenRange
from podferry.sidecar.fetch.range_checksums import RangeChecksums
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.checksum.checksums import Checksum, ChecksumKind, crc

Fetch = Callable[[int, int], Awaitable[memoryview]]
"""(start, length) → these bytes of the object, anew."""


class RangedFile:
    """One of them.

    Args:
        growing: The file aside.
        stage: What it is to get into.
        wanted: What it must add up to; None where the store does not say.

    Attributes:
        entry: What it is to become.
    """

    def __init__(self, growing: PartialFile, stage: StagingDir, wanted: Checksum | None) -> None:
        self.growing, self.entry = growing, growing.entry
        self._stage = stage
        self._checked: RangeChecksums | None = None
        if wanted is not None:
            self.expect(wanted)

    @property
    def kind(self) -> ChecksumKind | None:
        """How its ranges are to be summed; None where they need not be."""
        return self._checked.kind if self._checked is not None else None

    def expect(self, wanted: Checksum) -> None:
        """What it must add up to; said once is enough."""
        if self._checked is None:
            self._checked = RangeChecksums(wanted, self.entry.size, self.growing.path)
            for came in self.growing.came.values():
                self._sum(came)

    def came(self, came: WrittenRange) -> bool:
        """A range is written; whether all are.

        Raises:
            OSError: That cannot be noted.
        """
        self.growing.note(came)
        self._sum(came)
        return self.growing.whole

    def summed(self, start: int, data: memoryview) -> WrittenRange:
        """What is to be noted of a range."""
        return WrittenRange(start, len(data), self.kind or "", crc(self.kind, data) if self.kind else 0)

    def plainly_right(self) -> bool:
        """Whether it adds up, as far as that is told without reading it."""
        if self._checked is None:
            return True
        return self.kind == self._checked.wanted.kind and self._checked.right()

    async def settle(self, fetch: Fetch) -> None:
        """Look into one that is not plainly right: fetch again what is wrong with it, until it adds up.

        Raises:
            Corrupt: It does not.
        """
        checked = self._checked
        if checked is None:
            return
        again = checked.again()
        # In a thread: a hash is computed of the whole file, which takes two seconds a GiB.
        while (piece := await asyncio.to_thread(next, again, None)) is not None:
            data = await fetch(*piece)
            await asyncio.to_thread(self._stage.write, self.growing.path, data, piece[0])
            self.came(self.summed(piece[0], data))
        if not await asyncio.to_thread(checked.right):
            raise checked.problem(self.entry.name)

    def _sum(self, came: WrittenRange) -> None:
        if self._checked is None:
            return
        value = came.crc if came.kind == self.kind else self._read(came)
        self._checked.summed(came.start, came.length, value)

    def _read(self, came: WrittenRange) -> int:
        """The sum of a range that an earlier start wrote without one."""
        assert self.kind is not None  # noqa: S101 - there is one where it is checked
        with self.growing.path.open("rb", buffering=0) as file:
            file.seek(came.start)
            return crc(self.kind, file.read(came.length))

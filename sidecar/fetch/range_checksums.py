"""Whether a file has the sum that its store states, and where it has not, which ranges to fetch again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import msgspec

from podferry.contract.errors import Corrupt
from podferry.sidecar.runtime.file_digest import add_file
from podferry.storage.checksum.checksums import (
    CRC_KINDS,
    DIGEST_BYTES,
    Checksum,
    ChecksumKind,
    combine_crcs,
    range_kind,
    running_checksum,
)

TRIES = 3
"""How often a range is fetched again where no two in succession are the same: then nothing will mend it."""


class ChecksummedRange(msgspec.Struct, frozen=True, gc=False):
    """One range as it came last.

    Attributes:
        length: Bytes.
        crc: Their CRC: of the stated kind, or CRC-64/NVME beside a hash, only to know the range again.
    """

    length: int
    crc: int


class RangeChecksums:
    """The sum of one file whose ranges come in any order, and of each again where the whole is wrong.

    What lies in the file must be what came last of each range. A small file that comes in one piece needs
    none of this: see `podferry.storage.checksum.checksums.matches`.

    CRCs of ranges make that of the whole. Of a hash there is no such thing: the file is
    read once it is there.
    """

    def __init__(self, wanted: Checksum, size: int, path: Path) -> None:
        """A file of which nothing has come.

        Args:
            wanted: What the store states.
            size: Bytes of the whole.
            path: The file; only read for a hash.
        """
        self.wanted = wanted
        self._size = size
        self._path = path
        self._kind = range_kind(wanted)
        self._ranges: dict[int, ChecksummedRange] = {}
        self._found: Checksum | None = None

    @property
    def kind(self) -> ChecksumKind:
        """How each range is summed."""
        return self._kind

    def summed(self, start: int, length: int, value: int) -> None:
        """A range lies in the file, for the first time or again, with this CRC of `kind`."""
        now = ChecksummedRange(length, value)
        if now != self._ranges.get(start):
            self._found = None
        self._ranges[start] = now

    def right(self) -> bool:
        """Whether all has come, and adds up to what the store states.

        Raises:
            OSError: The file cannot be read back.
        """
        return self._complete() and self.found() == self.wanted

    def found(self) -> Checksum:
        """What the file adds up to now, once all has come."""
        if self._found is None:
            value = self._combined() if self.wanted.kind in CRC_KINDS else self._hashed()
            self._found = Checksum(self.wanted.kind, value)
        return self._found

    def again(self) -> Iterator[tuple[int, int]]:
        """Ranges (start, length) to fetch once more, one at a time, until the sum is right.

        The caller writes each into the file and calls `summed` before it asks for the next. A range that
        comes as it came before is what the store holds. One that differs was damaged on its way, now or
        then: where the sum is not right with it, it comes once more, until two in succession are the same.
        """
        for start in sorted(self._ranges):
            for _ in range(TRIES):
                if self.right():
                    return
                before = self._ranges[start]
                yield start, before.length
                if self._ranges[start] == before:
                    break

    def problem(self, name: str) -> Corrupt:
        """The error of a file that `again` could not mend."""
        return mismatch(name, self.found(), self.wanted)

    def _complete(self) -> bool:
        ordered = sorted(self._ranges.items())
        ends = accumulate((one.length for _, one in ordered), initial=0)
        starts = [*(start for start, _ in ordered), self._size]
        return starts == list(ends)

    def _combined(self) -> bytes:
        value = 0
        for _, one in sorted(self._ranges.items()):
            value = combine_crcs(self._kind, value, one.crc, one.length) if one.length else value
        return value.to_bytes(DIGEST_BYTES[self._kind], "big")

    def _hashed(self) -> bytes:
        whole = running_checksum(self.wanted.kind)
        with self._path.open("rb", buffering=0) as file:
            add_file(file, whole)
        return whole.digest()


def mismatch(name: str, found: Checksum, stated: Checksum) -> Corrupt:
    """The error of an object that does not have its sum, however often it is read."""
    return Corrupt.of(
        f"{name} is damaged: it does not have its checksum",
        f"found {found}; stated {stated}",
        "Compare it with its source, and upload it again",
    )

"""Verifies the checksum of a file from the checksums of its ranges, and finds the ranges to fetch again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from podferry.contract.errors import Corrupt
from podferry.sidecar.fetch.file_hash import FileHash
from podferry.storage.checksum.checksums import (
    CRC_KINDS,
    DIGEST_BYTES,
    Checksum,
    combine_crcs,
    crc,
    range_kind,
)

HASHED_AHEAD_BYTES = 64 << 20
"""At a time: a tenth of a second of MD5, which the end of a failed fetch may have to wait for."""
MAX_REFETCHES = 3
"""Of one range while no two in succession are equal: after that no retry will help."""


class RangeChecksums:
    """The checksum of one file whose ranges arrive in any order, and again if it does not match.

    The file must hold what was last received of each range. A file that arrives in one range does not need
    this: see `podferry.storage.checksum.checksums.matches`. CRCs of ranges combine into that of the file; for
    a hash the complete file is read.

    Args:
        expected: What the store states.
        size: Bytes of the file.
        path: The file; only read for a hash.

    Attributes:
        kind: The checksum of each range; with a hash, only to recognize a range that is fetched again.
    """

    def __init__(self, expected: Checksum, size: int, path: Path) -> None:
        self.expected = expected
        self._size = size
        self._path = path
        self.kind = range_kind(expected)
        self._ranges: dict[int, tuple[int, int | None]] = {}
        """(length, CRC) by start."""
        self._computed: Checksum | None = None
        self._hash = FileHash(expected.kind, path) if expected.kind not in CRC_KINDS else None

    def add(self, start: int, length: int, value: int | None) -> None:
        """A range is in the file, for the first time or again, with this CRC of `kind`.

        With a hash the CRC may be None: it is computed if a range must be fetched again.
        """
        before = self._ranges.get(start)
        if value is None or before != (length, value):
            self._computed = None
            if before is not None and self._hash is not None:
                self._hash.restart()
        self._ranges[start] = length, value

    def hash_ahead(self) -> bool:
        """Hash some of what is in the file without a gap; whether there was any. Blocks; thread-safe."""
        if self._hash is None:
            return False
        end = self._hash.position
        while end < self._hash.position + HASHED_AHEAD_BYTES and end in self._ranges:
            end += self._ranges[end][0]
        return self._hash.read_to(end)

    def is_known(self) -> bool:
        """Whether the checksum of each range is known; else `matches` reads the file."""
        return all(value is not None for _, value in self._ranges.values())

    def matches(self) -> bool:
        """Whether the file is complete and has the expected checksum; `OSError` if it cannot be read."""
        return self._is_complete() and self.compute() == self.expected

    def compute(self) -> Checksum:
        """The checksum of the complete file."""
        if self._computed is None:
            value = self._combine() if self._hash is None else self._hash.digest(self._size)
            self._computed = Checksum(self.expected.kind, value)
        return self._computed

    def refetches(self) -> Iterator[tuple[int, int]]:
        """Ranges (start, length) to fetch again, one at a time, until the checksum matches.

        The caller writes each into the file and calls `add` before it takes the next. A range that arrives
        unchanged is what the store holds. One that differs was damaged in transit, now or before: unless the
        checksum matches with it, it is fetched until two in succession are equal.
        """
        for start in sorted(self._ranges):
            for _ in range(MAX_REFETCHES):
                if self.matches():
                    return
                before = self._ranges[start] = self._known(start)
                yield start, before[0]
                if self._ranges[start] == before:
                    break

    def error(self, name: str) -> Corrupt:
        """The error of a file that `refetches` could not repair."""
        return mismatch(name, self.compute(), self.expected)

    def _is_complete(self) -> bool:
        ordered = sorted(self._ranges.items())
        ends = accumulate((length for _, (length, _) in ordered), initial=0)
        starts = [*(start for start, _ in ordered), self._size]
        return starts == list(ends)

    def _combine(self) -> bytes:
        value = 0
        for start in sorted(self._ranges):
            length, second = self._known(start)
            value = combine_crcs(self.kind, value, second, length) if length else value
        return value.to_bytes(DIGEST_BYTES[self.kind], "big")

    def _known(self, start: int) -> tuple[int, int]:
        """Length and CRC of a range that is in the file."""
        length, value = self._ranges[start]
        if value is None:
            with self._path.open("rb", buffering=0) as file:
                file.seek(start)
                value = crc(self.kind, file.read(length))
        return length, value


def mismatch(name: str, found: Checksum, stated: Checksum) -> Corrupt:
    """The error of an object that never has its stated checksum."""
    return Corrupt.of(
        f"{name} is damaged: it does not have its checksum",
        f"found {found}; stated {stated}",
        "Compare it with its source, and upload it again",
    )

"""Files in parts: what one holder of a dataset fetches from the source, and the others take from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

import msgspec

from podferry.contract.manifest import Entry

PART_BYTES = 64 << 20
"""Of a part of a large file: eight requests of the fetch engine, and a few seconds of one connection. All
holders cut a file alike."""


class FilePart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some bytes of a file, or all of them.

    Attributes:
        entry: The file, as it was listed at the source.
        start, length: The bytes.
    """

    entry: Entry
    start: int
    length: int

    @property
    def is_whole(self) -> bool:
        """Whether it is the file."""
        return self.length == self.entry.size

    @property
    def key(self) -> str:
        """Its name among all parts of a dataset."""
        return f"{self.entry.name}\0{self.start}" if self.start else self.entry.name


def parts_of(entry: Entry) -> tuple[FilePart, ...]:
    """A file in parts of `PART_BYTES`, the last one shorter; one part of a small file, an empty one too."""
    starts = range(0, max(entry.size, 1), PART_BYTES)
    return tuple(FilePart(entry, start, min(PART_BYTES, entry.size - start)) for start in starts)


def parts_within(entry: Entry, start: int, length: int) -> Iterable[FilePart]:
    """The parts of a file that have some of these bytes."""
    found = parts_of(entry)[start // PART_BYTES :]
    return takewhile(lambda part: part.start < start + max(length, 1), found)

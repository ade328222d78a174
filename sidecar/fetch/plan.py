"""What to fetch, in which pieces. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import msgspec

from podferry.contract.manifest import Entry, Manifest
from podferry.sidecar.config.tuning import PrefetchSettings


class FileRange(msgspec.Struct, frozen=True, gc=False):
    """One request.

    Attributes:
        file: Index of the file in the plan.
        start, length: The range of it, bytes.
    """

    file: int
    start: int
    length: int


class FetchPlan(msgspec.Struct, frozen=True):
    """What is still to be fetched.

    Attributes:
        files: The entries, largest first: the long ones must not be left to the end.
        pieces: How many requests each file needs.
        kept: Entries that the stage already holds.
        range_bytes: Length of a piece of a large file.
        buffer_bytes: Bytes in flight, the most that there will be.
        partial: Bytes of the files that an earlier start left aside.
    """

    files: tuple[Entry, ...]
    pieces: tuple[int, ...]
    kept: tuple[Entry, ...]
    range_bytes: int
    buffer_bytes: int
    partial: int = 0

    def requests(self) -> Iterator[FileRange]:
        """All pieces, file by file."""
        for index, (entry, count) in enumerate(zip(self.files, self.pieces, strict=True)):
            for number in range(count):
                start = number * self.range_bytes
                yield FileRange(index, start, min(self.range_bytes, entry.size - start))


def plan_fetch(manifest: Manifest, kept: frozenset[str], settings: PrefetchSettings) -> FetchPlan:
    """Divide a manifest into requests.

    Args:
        manifest: What the stage must hold in the end.
        kept: Names that it holds already.
        settings: Length of a range, and bytes in flight.
    """
    wanted = (entry for entry in manifest.entries if entry.name not in kept)
    files = tuple(sorted(wanted, key=attrgetter("size"), reverse=True))  # of one size, they stay in order
    counts = (max(1, -(-entry.size // settings.range_bytes)) for entry in files)
    held = tuple(entry for entry in manifest.entries if entry.name in kept)
    return FetchPlan(files, tuple(counts), held, settings.range_bytes, settings.buffer_bytes)

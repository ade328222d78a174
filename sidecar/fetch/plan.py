"""Plans which ranges of which objects to fetch. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import msgspec

from podferry.contract.manifest import Entry, Manifest
from podferry.sidecar.config.tuning import PrefetchSettings


class FileRange(msgspec.Struct, frozen=True, gc=False):
    """One request: bytes `start`, `length` of the file with this index in the plan."""

    file: int
    start: int
    length: int


class FetchPlan(msgspec.Struct, frozen=True):
    """What is still to be fetched.

    Attributes:
        files: The entries, largest first: a large one must not start last.
        range_counts: How many requests each file needs.
        kept: Entries that the stage already holds.
        range_bytes: Length of a range of a large file.
        buffer_bytes: Limit of the bytes in flight.
        partial_bytes: Bytes of the files that an earlier start wrote to partial files.
    """

    files: tuple[Entry, ...]
    range_counts: tuple[int, ...]
    kept: tuple[Entry, ...]
    range_bytes: int
    buffer_bytes: int
    partial_bytes: int = 0

    def ranges(self) -> Iterator[FileRange]:
        """All requests, file by file."""
        for index, (entry, count) in enumerate(zip(self.files, self.range_counts, strict=True)):
            for number in range(count):
                start = number * self.range_bytes
                yield FileRange(index, start, min(self.range_bytes, entry.size - start))


def plan_fetch(manifest: Manifest, kept: frozenset[str], settings: PrefetchSettings) -> FetchPlan:
    """Divide a manifest into requests.

    Args:
        manifest: What the stage is to hold.
        kept: Names that it already holds.
        settings: Length of a range, and bytes in flight.
    """
    missing = (entry for entry in manifest.entries if entry.name not in kept)
    files = tuple(sorted(missing, key=attrgetter("size"), reverse=True))  # stable for equal sizes
    counts = (max(1, -(-entry.size // settings.range_bytes)) for entry in files)
    kept_entries = tuple(entry for entry in manifest.entries if entry.name in kept)
    return FetchPlan(files, tuple(counts), kept_entries, settings.range_bytes, settings.buffer_bytes)

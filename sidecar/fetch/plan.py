"""Plans which ranges of which objects to fetch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

import msgspec

from podferry.contract.file_part import FilePart
from podferry.contract.manifest import Entry, Manifest
from podferry.sidecar.config.tuning import PrefetchSettings

Span = tuple[int, int]
"""Start and length in bytes."""
NO_SPANS: Mapping[int, tuple[Span, ...]] = {}


class FetchPlan(msgspec.Struct, frozen=True):
    """What is still to be fetched.

    Attributes:
        files: The entries, largest first: a large one must not start last.
        range_counts: How many requests each file needs.
        kept: Entries that the stage already holds.
        range_bytes: Length of a range of a large file.
        buffer_bytes: Limit of the bytes in flight.
        partial_bytes: Bytes of the files that an earlier start wrote to partial files.
        spans: What to fetch of the files, by index, that are not fetched whole. These are not published.
    """

    files: tuple[Entry, ...]
    range_counts: tuple[int, ...]
    kept: tuple[Entry, ...]
    range_bytes: int
    buffer_bytes: int
    partial_bytes: int = 0
    spans: Mapping[int, tuple[Span, ...]] = NO_SPANS

    def is_large(self, index: int) -> bool:
        """Whether the file takes more than one request."""
        return self.files[index].size > self.range_bytes

    def ranges_of(self, index: int) -> Iterator[Span]:
        """The ranges of a file, one for each request."""
        for first, length in self.spans.get(index, ((0, self.files[index].size),)):
            for start in range(first, first + max(length, 1), self.range_bytes):
                yield start, min(self.range_bytes, first + length - start)


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


def plan_parts(parts: Iterable[FilePart], settings: PrefetchSettings) -> FetchPlan:
    """Divide parts of files into requests.

    Args:
        parts: What to fetch; those of large files start at a multiple of the length of a range.
        settings: Length of a range, and bytes in flight.
    """
    spans: dict[Entry, list[Span]] = {}
    for part in parts:
        spans.setdefault(part.entry, []).append((part.start, part.length))
    files = tuple(sorted(spans, key=attrgetter("size"), reverse=True))
    size = settings.range_bytes
    counts = tuple(sum(max(1, -(-length // size)) for _, length in spans[entry]) for entry in files)
    partly = {
        index: tuple(spans[entry]) for index, entry in enumerate(files) if spans[entry] != [(0, entry.size)]
    }
    return FetchPlan(files, counts, (), size, settings.buffer_bytes, spans=partly)

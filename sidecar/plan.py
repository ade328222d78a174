"""What to fetch, in which pieces, and whether it fits. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from podferry.contract.errors import Problem, Refused
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.memory import charged, in_pages
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.sidecar.capacity import Capacity
from podferry.sidecar.settings import PrefetchSettings


class Piece(msgspec.Struct, frozen=True, gc=False):
    """One request.

    Attributes:
        file: Index of the file in the plan.
        start, length: The range of it, bytes.
    """

    file: int
    start: int
    length: int


class PrefetchPlan(msgspec.Struct, frozen=True):
    """What is still to be fetched.

    Attributes:
        files: The entries, largest first: the long ones must not be left to the end.
        pieces: How many requests each file needs.
        kept: Entries that the stage already holds.
        range_bytes: Length of a piece of a large file.
        buffer_bytes: Bytes in flight, the most that there will be.
    """

    files: tuple[Entry, ...]
    pieces: tuple[int, ...]
    kept: tuple[Entry, ...]
    range_bytes: int
    buffer_bytes: int

    def requests(self) -> Iterator[Piece]:
        """All pieces, file by file."""
        for index, (entry, count) in enumerate(zip(self.files, self.pieces, strict=True)):
            for number in range(count):
                start = number * self.range_bytes
                yield Piece(index, start, min(self.range_bytes, entry.size - start))


def plan_prefetch(manifest: Manifest, kept: frozenset[str], settings: PrefetchSettings) -> PrefetchPlan:
    """Divide a manifest into requests.

    Args:
        manifest: What the stage must hold in the end.
        kept: Names that it holds already.
        settings: Length of a range, and bytes in flight.
    """
    files = sorted((e for e in manifest.entries if e.name not in kept), key=lambda e: (-e.size, e.name))
    counts = (max(1, -(-entry.size // settings.range_bytes)) for entry in files)
    held = tuple(entry for entry in manifest.entries if entry.name in kept)
    return PrefetchPlan(tuple(files), tuple(counts), held, settings.range_bytes, settings.buffer_bytes)


def fit_problems(plan: PrefetchPlan, capacity: Capacity, *, in_pod: bool) -> list[Problem]:
    """Why the plan does not fit, each limit with its numbers; empty where it does.

    Args:
        plan: What is to be written.
        capacity: What there is room for.
        in_pod: Remedies name annotations rather than options of the command line.
    """
    return [*_volume_problems(plan, capacity, in_pod), *_memory_problems(plan, capacity, in_pod)]


def _volume_problems(plan: PrefetchPlan, capacity: Capacity, in_pod: bool) -> Iterator[Problem]:
    need = in_pages(entry.size for entry in plan.files)
    if need > capacity.volume_bytes:
        free = format_bytes(capacity.volume_bytes)
        measured = f"{_files(plan)} need {format_bytes(need)} in whole pages; {free} are free"
        yield Problem("the dataset is larger than its volume", measured, _room(plan, in_pod))
    directories = len(_directories(plan.files) - _directories(plan.kept))
    if capacity.volume_files is not None and len(plan.files) + directories > capacity.volume_files:
        free = f"{capacity.volume_files:,} inodes are free"
        measured = f"{len(plan.files):,} files in {directories:,} directories; {free}"
        yield Problem("the volume has too few inodes", measured, "Pack small files into archives")


def _memory_problems(plan: PrefetchPlan, capacity: Capacity, in_pod: bool) -> Iterator[Problem]:
    sizes = [entry.size for entry in plan.files]
    flight = 2 * min(plan.buffer_bytes, sum(sizes))  # a body in chunks, and joined
    need = charged(sizes) + flight
    wanted = (
        f"{_files(plan)} need {format_bytes(need)} with pages, inodes and {format_bytes(flight)} in flight"
    )
    if capacity.memory_bytes is not None and need > capacity.memory_bytes:
        measured = f"{wanted}; the limit leaves {format_bytes(capacity.memory_bytes)}"
        remedy = _room(plan, in_pod) if in_pod else "Raise the memory limit of this process's cgroup"
        yield Problem("the dataset is larger than the memory limit", measured, remedy)
    if capacity.node_bytes is not None and need > capacity.node_bytes:
        measured = f"{wanted}; {format_bytes(capacity.node_bytes)} are available"
        remedy = f"Use a {'node' if in_pod else 'machine'} with more memory, or a smaller dataset"
        yield Problem("the dataset is larger than the memory that this machine has left", measured, remedy)


def _files(plan: PrefetchPlan) -> str:
    count = len(plan.files)
    return f"{count:,} file{'s' * (count != 1)} of {format_bytes(sum(entry.size for entry in plan.files))}"


def _directories(entries: Iterable[Entry]) -> set[str]:
    """All directories that files lie in, those above included."""
    found: set[str] = set()
    for entry in entries:
        parent = entry.name.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return found


def _room(plan: PrefetchPlan, in_pod: bool) -> str:
    """A larger volume or another path holds the whole dataset, what is kept included."""
    need = charged(entry.size for entry in (*plan.files, *plan.kept))
    if in_pod:
        size = quantity_at_least(need + need // 20)
        return f"Set podferry.io/dataset-size to {size}, or use a smaller dataset"
    return f"Give --dataset-path a place with {format_bytes(need)} free, or use a smaller dataset"


def refuse_unless_fits(plan: PrefetchPlan, capacity: Capacity, *, in_pod: bool) -> None:
    """Raise what `fit_problems` finds.

    Raises:
        Refused: It does not fit; no byte has moved.
    """
    Refused.raise_any(fit_problems(plan, capacity, in_pod=in_pod))

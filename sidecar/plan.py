"""What to fetch, in which pieces, and whether it fits. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podferry.contract.errors import Problem, Refused
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.memory import charged
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.sidecar.capacity import Capacity
from podferry.sidecar.settings import PrefetchSettings


class Piece(msgspec.Struct, frozen=True):
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
    """

    files: tuple[Entry, ...]
    pieces: tuple[int, ...]
    kept: tuple[Entry, ...]
    range_bytes: int

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
        settings: Length of a range.
    """
    files = sorted((e for e in manifest.entries if e.name not in kept), key=lambda e: (-e.size, e.name))
    counts = (max(1, -(-entry.size // settings.range_bytes)) for entry in files)
    held = tuple(entry for entry in manifest.entries if entry.name in kept)
    return PrefetchPlan(tuple(files), tuple(counts), held, settings.range_bytes)


def fit_problems(plan: PrefetchPlan, capacity: Capacity, *, in_pod: bool) -> list[Problem]:
    """Why the plan does not fit, each limit with its numbers; empty where it does.

    Args:
        plan: What is to be written.
        capacity: What there is room for.
        in_pod: Remedies name annotations rather than options of the command line.
    """
    sizes = [entry.size for entry in plan.files]
    need = charged(sizes) if capacity.in_memory else sum(sizes)
    files = f"{len(sizes):,} files of {format_bytes(sum(sizes))}"
    wanted = f"{files} need {format_bytes(need)} with pages and inodes" if capacity.in_memory else files
    problems = []
    if need > capacity.volume_bytes:
        measured = f"{wanted}; {format_bytes(capacity.volume_bytes)} are free"
        problems.append(
            Problem("the dataset is larger than its volume", measured, _room(need, in_pod=in_pod))
        )
    if capacity.volume_files is not None and len(sizes) > capacity.volume_files:
        measured = f"{len(sizes):,} files; {capacity.volume_files:,} are free"
        problems.append(Problem("the volume has too few inodes", measured, "Pack small files into archives"))
    if capacity.memory_bytes is not None and need > capacity.memory_bytes:
        measured = f"{wanted}; the limit leaves {format_bytes(capacity.memory_bytes)}"
        remedy = _room(need, in_pod=in_pod) if in_pod else "Raise the memory limit of this process's cgroup"
        problems.append(Problem("the dataset is larger than the memory limit", measured, remedy))
    return problems


def _room(need: int, *, in_pod: bool) -> str:
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

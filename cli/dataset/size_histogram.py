"""Statistics of the file sizes of a dataset. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low

import msgspec

from podferry.contract.dataset_volume import MIN_SLACK_BYTES, SLACK_PERCENT
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.contract.tmpfs_cost import charged_bytes

KIB = 1024
BUCKET_BOUNDS = (4 * KIB, 64 * KIB, KIB**2, 16 * KIB**2, 256 * KIB**2, 4 * KIB**3)
"""Bytes: a page, small images, large images, one range of the prefetch, shards, archives."""


class Bucket(msgspec.Struct, frozen=True):
    """Files of similar size: their range of sizes in words, their number, and the sum of their sizes."""

    what: str
    files: int
    bytes: int


def size_histogram(sizes: Sequence[int]) -> list[Bucket]:
    """Group file sizes into buckets, without empty ones."""
    groups: dict[int, list[int]] = {}
    for size in sizes:
        groups.setdefault(sum(size > bound for bound in BUCKET_BOUNDS), []).append(size)
    return [Bucket(_label(index), len(group), sum(group)) for index, group in sorted(groups.items())]


def size_statistics(sizes: Sequence[int]) -> dict[str, int]:
    """Smallest, median and largest of at least one size."""
    return {"smallest": min(sizes), "median": median_low(sizes), "largest": max(sizes)}


def recommended_size(sizes: Sequence[int]) -> str:
    """The quantity to set as `dataset-size`: what the files are charged, plus the volume's slack."""
    need = charged_bytes(sizes)
    return quantity_at_least(need + max(-(-need * SLACK_PERCENT // 100), MIN_SLACK_BYTES))


def _label(index: int) -> str:
    if index == len(BUCKET_BOUNDS):
        return f"above {format_bytes(BUCKET_BOUNDS[-1])}"
    return f"up to {format_bytes(BUCKET_BOUNDS[index])}"

"""Figures about the sizes of a dataset's files. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low

import msgspec

from podferry.contract.memory import MIN_SLACK_BYTES, SLACK_PERCENT
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.contract.tmpfs_cost import charged_bytes

KIB = 1024
EDGES = (4 * KIB, 64 * KIB, KIB**2, 16 * KIB**2, 256 * KIB**2, 4 * KIB**3)
"""A page, small images, large images, one range of the prefetch, shards, archives: bytes."""


class Bucket(msgspec.Struct, frozen=True):
    """The files of similar sizes.

    Attributes:
        what: Their sizes in words.
        files: How many.
        bytes: The sum of their sizes.
    """

    what: str
    files: int
    bytes: int


def buckets(sizes: Sequence[int]) -> list[Bucket]:
    """How many files of which sizes there are; sizes that no file has are left out."""
    held: dict[int, list[int]] = {}
    for size in sizes:
        held.setdefault(sum(size > edge for edge in EDGES), []).append(size)
    return [Bucket(_words(number), len(found), sum(found)) for number, found in sorted(held.items())]


def typical_sizes(sizes: Sequence[int]) -> dict[str, int]:
    """Smallest, median and largest size of at least one file."""
    return {"smallest": min(sizes), "median": median_low(sizes), "largest": max(sizes)}


def dataset_size(sizes: Sequence[int]) -> str:
    """The quantity to write as `dataset-size`: what the files are charged, and the volume's slack."""
    need = charged_bytes(sizes)
    return quantity_at_least(need + max(-(-need * SLACK_PERCENT // 100), MIN_SLACK_BYTES))


def _words(number: int) -> str:
    if number == len(EDGES):
        return f"above {format_bytes(EDGES[-1])}"
    return f"up to {format_bytes(EDGES[number])}"

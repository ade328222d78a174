"""How much the benchmarks of the node cache do, and what they find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from datasets import FULL as FULL_SETS
from datasets import MIB, Data, Kind
from datasets import SHORT as SHORT_SETS
from harness import Finding, Result


@dataclass(frozen=True, slots=True)
class Found:
    """Times, and what is no time."""

    results: tuple[Result, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __add__(self, more: Found) -> Found:
        return Found((*self.results, *more.results), (*self.findings, *more.findings))


@dataclass(frozen=True, slots=True)
class CacheScale:
    """How much.

    Attributes:
        sets: By name: `small`, `mixed`, `large`, `tiny`, `least`, and `flight`, which each reader has.
        compared: The sets that whole commands are compared with.
        opened: Those that a second pod copies.
        readers: How many start at once.
        pairs: Rounds of short contests that count.
        slow_pairs: Of those against mounts.
        warm_pairs: Of warm epochs, which are short and noisy.
        sample: Files of which each is opened and read, to see how long that takes.
    """

    sets: Mapping[str, Data]
    compared: tuple[str, ...]
    opened: tuple[str, ...]
    readers: int
    pairs: int
    slow_pairs: int
    warm_pairs: int
    starts: int
    sample: int

    def with_pairs(self, pairs: int | None) -> CacheScale:
        """The same with so many rounds of everything, if given."""
        return self if pairs is None else replace(self, pairs=pairs, slow_pairs=pairs, warm_pairs=pairs)


def _sets(sets: Mapping[str, Data], *more: Data) -> dict[str, Data]:
    least = Data("least", "1 x 10 KB", (Kind(1, 10_000, 10_000),))
    usual = (sets[name] for name in ("small", "mixed", "large", "tiny"))
    return {one.name: one for one in (*usual, least, *more)}


FULL = CacheScale(
    _sets(
        FULL_SETS,
        Data(
            "flight",
            "2,000 x 20-50 KB, 2 x 64 MiB",
            (Kind(2_000, 20_000, 50_000), Kind(2, 64 * MIB, 64 * MIB)),
        ),
    ),
    compared=("small", "large"),
    opened=("small", "mixed", "large"),
    readers=8,
    pairs=4,
    slow_pairs=2,
    warm_pairs=10,
    starts=9,
    sample=500,
)
SHORT = CacheScale(
    _sets(
        SHORT_SETS,
        Data("flight", "50 x 20-50 KB, 2 x 9 MiB", (Kind(50, 20_000, 50_000), Kind(2, 9 * MIB, 9 * MIB))),
    ),
    compared=("small",),
    opened=("small",),
    readers=2,
    pairs=1,
    slow_pairs=1,
    warm_pairs=1,
    starts=1,
    sample=20,
)
"""Shows that it runs."""

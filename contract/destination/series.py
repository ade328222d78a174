"""Names of one series differ only in digits: `step-100` and `step-200`, or the shards of one save. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from podferry.contract.destination.commit import NUMBER


def series_of(name: str) -> str:
    """What all names of a series have in common."""
    return NUMBER.sub("#", name)


def by_series(names: Iterable[str]) -> dict[str, list[str]]:
    """The names of each series, in the order of their numbers."""
    found = defaultdict[str, list[str]](list)
    for name in names:
        found[series_of(name)].append(name)
    for series in found.values():
        series.sort(key=lambda name: [int(digits) for digits in NUMBER.findall(name)])
    return found


def without_counterpart(expected: Iterable[str], names: Iterable[str]) -> list[str]:
    """The `expected` names that `names` have nothing for, sorted; each series must have as many names."""
    counts = {series: len(found) for series, found in by_series(names).items()}
    return sorted(
        name for series, found in by_series(expected).items() for name in found[counts.get(series, 0) :]
    )

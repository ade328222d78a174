"""Words in names, and series: names that differ only in digits, such as `step-1` and `step-2`. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

NUMBER = re.compile(r"\d+")
WORD, LONE_CAPITAL = re.compile(r"[a-z]+"), re.compile(r"(?<=[a-z])[A-Z](?![A-Za-z])")


def words_of(name: str) -> list[str]:
    """The words in a name, in small letters. A last capital is one, too: `netG` is `net` and `g`."""
    return WORD.findall(LONE_CAPITAL.sub(r" \g<0>", name).lower())


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

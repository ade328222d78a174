"""Words in names, and series: names that differ only in digits, such as `step-1` and `step-2`. Pure.

The number of a shard is no step: `step-200-rank0` and `step-200-rank1` are two files of one checkpoint.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

NUMBER = re.compile(r"\d+")
WORD, LONE_CAPITAL = re.compile(r"[a-z]+"), re.compile(r"(?<=[a-z])[A-Z](?![A-Za-z])")

_OF = r"[-_]?of[-_]?"
_WORKERS = "parts?|procs?|process|workers?|nodes?|gpus?"
_ANY = f"(?:rank|shard|{_WORKERS}|[tpdm]p)"
SHARD_NUMBER = re.compile(
    rf"(?<![a-z])(?:(?:rank|shard)[-_=]?\d+(?:{_OF}\d+)?|{_ANY}[-_=]?\d+{_OF}\d+)(?![a-z\d])"
    rf"|(?<!\d)\d{{4,}}{_OF}\d{{4,}}(?!\d)",
    re.IGNORECASE,
)
"""`rank0`, `shard-1-of-2`, `part1of2`, `00001-of-00002`. Not `3-of-10`, which may be an epoch."""
WORKER_NUMBER = re.compile(rf"(?<![a-z])({_WORKERS}|[tpdm]p)[-_=]?(\d+)(?![a-z\d])", re.IGNORECASE)
"""`gpu0`, `tp1`. Alone it may be a step: `node_100`, `dp_100`."""


def words_of(name: str) -> list[str]:
    """The words in a name, in small letters. A last capital is one, too: `netG` is `net` and `g`."""
    return WORD.findall(LONE_CAPITAL.sub(r" \g<0>", name).lower())


def series_of(name: str) -> str:
    """What all names of a series have in common."""
    return NUMBER.sub("#", name)


def without_shards(name: str) -> str:
    """A name without the numbers of shards and the words before them; the name itself if nothing is left."""
    return _without(SHARD_NUMBER, name)


def without_parts(name: str) -> str:
    """The same, and without the numbers of workers if the name has another number, which is the step."""
    plain = without_shards(name)
    shorter = _without(WORKER_NUMBER, plain)
    return shorter if NUMBER.search(shorter) else plain


def _without(pattern: re.Pattern[str], name: str) -> str:
    if pattern.search(name) is None:
        return name
    plain = re.sub(r"[-_.=]+(?=[-_.])|[-_.=]+$|^[-_.=]+", "", pattern.sub("", name))
    return plain if re.search(r"[^\W_]", plain) else name


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

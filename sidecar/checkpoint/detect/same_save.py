"""Which files side by side one save has written, whatever their words are. Pure, over names and times.

`netG_epoch_1` and `netD_epoch_1`, `G_1000` and `D_1000`, `model_3` and `buffer_3`: a number and other words.
`step-200-gpu0` and `step-200-gpu1`, `model_gpu0` and `model_gpu1`: the same words and the numbers of workers.
Two series that only share a number are not one save: another file of either series was written in between,
or too much time has passed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

from podferry.contract.destination.kind import QUALIFIERS, RECORDED
from podferry.contract.destination.series import (
    NUMBER,
    WORKER_NUMBER,
    series_of,
    without_parts,
    words_of,
)

SAVE_NS = 3600 * 10**9
"""Longest time from one file of a save to the next: large ones take minutes."""
DECIMAL = re.compile(r"\d+\.\d+")
"""A rate or a loss: `ema_0.9999_020000`, `val_loss=0.30`. It numbers nothing."""
MARKERS = frozenset({"best", "last", "latest", "final"})
UNITS = QUALIFIERS | RECORDED | {"checkpoint", "checkpoints", "ckpt", "ckpts", "ep", "it", "iters", "global"}
"""Words that name no part: `epoch_5` and `step_5` are whole checkpoints of two series."""
Moment = tuple[int, tuple[int, ...]]
"""When a file of a series was written, nanoseconds since the epoch, and its numbers."""


@dataclass(frozen=True, slots=True)
class _File:
    stem: str
    changed_ns: int
    series: str
    numbers: tuple[int, ...]
    words: frozenset[str]
    plain: str

    @property
    def save(self) -> tuple[int, frozenset[str]]:
        """What all files of one save share: the step, which is the last number, and the markers."""
        return self.numbers[-1], self.words & MARKERS


def numbered_saves(changed_ns: Mapping[str, int]) -> list[list[str]]:
    """The stems of each save of several files.

    Args:
        changed_ns: When the files of each stem were last written, nanoseconds since the epoch.
    """
    ordered = sorted(changed_ns.items(), key=itemgetter(1))
    files = [_file(*one) for one in ordered if NUMBER.search(DECIMAL.sub("", one[0]))]
    moments, found = defaultdict[str, list[Moment]](list), defaultdict[object, list[_File]](list)
    for one in files:
        moments[one.series].append((one.changed_ns, one.numbers))
        found[one.save].append(one)
    saves = (save for same in found.values() for save in _split(same, moments))
    return [[one.stem for one in save] for save in saves if _has_parts(save)]


def worker_saves(changed_ns: Mapping[str, int]) -> list[list[str]]:
    """The stems of each save in which only the numbers of workers differ: all of them, from 0.

    `dp_0` may be an epoch of any training: two letters need a step in the name.
    """
    found = defaultdict[str, dict[int, str]](dict)
    for stem in changed_ns:
        worker = WORKER_NUMBER.search(stem)
        plain = WORKER_NUMBER.sub("", stem)
        if (
            worker is not None
            and len(worker[1]) > len("tp")
            and NUMBER.search(plain) is None
            and words_of(plain)
        ):
            found[plain][int(worker[2])] = stem
    saves = ([stem for _, stem in sorted(save.items())] for save in found.values() if _counts_from_0(save))
    return [save for save in saves if _is_one_time([changed_ns[stem] for stem in save])]


def _counts_from_0(numbers: Collection[int]) -> bool:
    return len(numbers) > 1 and set(numbers) == set(range(len(numbers)))


def _is_one_time(times: Iterable[int]) -> bool:
    ordered = sorted(times)
    return all(later - earlier <= SAVE_NS for earlier, later in pairwise(ordered))


def _has_parts(save: Sequence[_File]) -> bool:
    return len({one.words - UNITS for one in save}) > 1 or len({one.plain for one in save}) < len(save)


def _file(stem: str, changed_ns: int) -> _File:
    plain = without_parts(DECIMAL.sub("", stem))
    numbers = tuple(map(int, NUMBER.findall(plain)))
    return _File(stem, changed_ns, series_of(plain), numbers, frozenset(words_of(stem)), plain)


def _split(files: Iterable[_File], moments: Mapping[str, Sequence[Moment]]) -> list[list[_File]]:
    """Files of one step, oldest first, as saves: the same step may be another training's."""
    saves: list[list[_File]] = []
    for one in files:
        if saves and _belongs(one, saves[-1], moments):
            saves[-1].append(one)
        else:
            saves.append([one])
    return saves


def _belongs(one: _File, save: Sequence[_File], moments: Mapping[str, Sequence[Moment]]) -> bool:
    first, last = save[0].changed_ns, save[-1].changed_ns
    if one.changed_ns - last > SAVE_NS:
        return False
    if any(other.series == one.series and other.numbers != one.numbers for other in save):
        return False
    return not any(_others(moments[other.series], other, first, one.changed_ns) for other in (*save, one))


def _others(moments: Sequence[Moment], own: _File, begin: int, end: int) -> bool:
    """Whether a file with other numbers than `own` was written between two times."""
    between = moments[bisect_right(moments, begin, key=_when) : bisect_left(moments, end, key=_when)]
    return any(numbers != own.numbers for _, numbers in between)


def _when(moment: Moment) -> int:
    return moment[0]

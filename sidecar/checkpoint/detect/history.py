"""What those before it in its series say of a checkpoint. Pure, over names, sizes and times.

A series is what has the same name but for its digits: `step-100` and `step-200`, and the versions of `last`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from podferry.contract.quantity import format_bytes
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.missing_files import ended, missing_files
from podferry.sidecar.runtime.file_identity import FileIdentity

DIGITS = re.compile(r"\d+")
SHORT = 0.9
"""Below this share of the one before it, a file may be torn."""
NEAR = 4096
"""Bytes by which whole files of one series differ where their tensors are the same: what describes them."""


@dataclass(frozen=True, slots=True)
class History:
    """What else there is of a checkpoint's series.

    Attributes:
        before: What was taken for whole, newest first.
        beside: What lies there now, whole or not.
    """

    before: tuple[Candidate, ...]
    beside: tuple[Candidate, ...] = ()


def series_of(name: str) -> str:
    """What the names of one series have in common."""
    return DIGITS.sub("#", name)


def history_of(candidate: Candidate, taken: Iterable[Candidate], present: Iterable[Candidate]) -> History:
    """The rest of a checkpoint's series.

    Args:
        candidate: The checkpoint.
        taken: What was taken for whole, in any order; earlier versions of the same name are among it.
        present: What lies there now.
    """
    own = series_of(candidate.name)
    before = [one for one in taken if series_of(one.name) == own and one.changed_ns <= candidate.changed_ns]
    before.sort(key=lambda one: one.changed_ns, reverse=True)
    beside = (one for one in present if series_of(one.name) == own and one.name != candidate.name)
    return History(tuple(before), tuple(beside))


def shortened(candidate: Candidate, known: History) -> Iterator[tuple[str, str]]:
    """Which files of a checkpoint are clearly shorter than those before them, each with the sizes in words.

    What was there before the writer's end mark came is left out. Two of the same new size show that it is
    meant: a writer that is killed leaves any size.

    Args:
        candidate: The checkpoint.
        known: The rest of its series.
    """
    files = dict(candidate.files)
    before = [dict(_pairs(candidate, one)) for one in known.before]
    beside = [dict(_pairs(candidate, one)) for one in known.beside]
    for name in files.keys() - ended(files):
        size = files[name].size
        sizes = [found[name].size for found in before if name in found]
        others = [found[name].size for found in beside if name in found]
        if clearly_shorter(size, sizes) and not any(abs(other - size) <= NEAR for other in sizes + others):
            yield name, f"{name} has {format_bytes(size)}, the one before had {format_bytes(sizes[0])}"


def clearly_shorter(size: int, before: list[int]) -> bool:
    """Whether a size is far from those before it, newest first, in bytes."""
    if not before or size >= before[0] - NEAR:
        return False
    even = len(before) > 1 and abs(before[0] - before[1]) <= NEAR
    return even or size < SHORT * before[0]


def _pairs(candidate: Candidate, other: Candidate) -> Iterator[tuple[str, FileIdentity]]:
    """The files of another of the series that stand where this one's do, by this one's names.

    Several that differ in digits alone, as ranks' do, are paired in their order where both have as many.
    """
    theirs = _by_series(other)
    for key, names in _by_series(candidate).items():
        found = theirs.get(key, [])
        if len(found) == len(names):
            held = dict(other.files)
            yield from ((name, held[twin]) for name, twin in zip(names, found, strict=True))


def _by_series(candidate: Candidate) -> Mapping[str, list[str]]:
    found = defaultdict(list)
    for name, _ in candidate.files:
        found[series_of(name)].append(name)
    for names in found.values():
        names.sort(key=lambda name: [int(digits) for digits in DIGITS.findall(name)])
    return found


def missed(candidate: Candidate, known: History, *, gang: bool) -> str | None:
    """Why a checkpoint lacks what the one before it had last, where its writer keeps to that."""
    if not known.before:
        return None
    had = {series_of(name) for name, _ in known.before[0].files}
    for lack in missing_files(dict(candidate.files), gang=gang):
        if lack.kept and series_of(lack.kept) in had:
            return f"{lack.reason}, and {known.before[0].name} had one"
    return None

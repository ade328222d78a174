"""Decides whether a checkpoint is sure or doubtful, from its files' evidence and the saves before it. Pure.

A checkpoint without a defect is sure if

* the trainer marked it,
* its directory was renamed into place,
* a file that its framework writes last proves it,
* it is one file that contains an entire training state, and its format proves its end, or
* it has the same files as the save before, all of them written again, and each is proven by its format, was
  renamed into place, or was closed with exactly the size of its counterpart.

All else is doubtful: a format that does not show its end, the first save of its kind with several files,
fewer or smaller files than the save before, files of two saves, a file that is still open. A later save of
the same kind settles the doubt: see `later_save.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from podferry.contract.destination.commit import Doubt, DoubtKind
from podferry.contract.destination.series import without_parts
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.evidence import Evidence
from podferry.sidecar.checkpoint.detect.flat_groups import is_part
from podferry.sidecar.checkpoint.detect.history import (
    Save,
    baseline_of,
    counterparts,
    missing_names,
    pickle_count,
    shrunk_files,
    twin_names,
    written_files,
)

FIRST = "it is the first of its series, and nothing shows that all of its files exist"
TEMPORARY_PART = re.compile(r"_temp/part-\d+-of-\d+\.")
"""In names of parts that TensorFlow merges and then removes: one that it could not remove is no loss."""
ONE_NAME = "give each save a name of its own at the top of the checkpoint directory"
SETTLED_BY_SUCCESS = frozenset({DoubtKind.UNPROVEN, DoubtKind.OPEN})
"""Doubts that end when the trainer ends successfully: it has written what it meant to write. Fewer, smaller
or older files than in the save before may show that it continued after an error."""
HALVES = frozenset({".pdparams", ".pdopt"})
"""Suffixes of files that never contain an entire training state: Paddle's."""
SCATTERED = frozenset({".h5", ".hdf5"})
"""Formats whose parts are written in any order: a torn file may have its full size when the kernel closes
it."""
STREAMED = frozenset({".distcp"})
"""Formats that are written from the beginning to the end and then synced: never mapped, but closed a while
after their last write. Source: torch/distributed/checkpoint/filesystem.py, `_write_files_from_queue`."""


def judge(
    candidate: Candidate, evidence: Evidence, earlier: Sequence[Save], *, framework: bool
) -> tuple[Doubt, ...]:
    """Why a checkpoint may be incomplete; nothing if it is sure.

    Args:
        candidate: A checkpoint without a defect.
        evidence: What its files show.
        earlier: The saves of its series before it, newest first.
        framework: Whether the file that its framework writes last proves it.
    """
    opened = tuple(Doubt(DoubtKind.OPEN, f"{name} is open for writing") for name in sorted(evidence.open))
    if evidence.renamed:
        return opened
    baseline = baseline_of(earlier)
    if baseline is None:
        whole = not opened and (framework or (is_self_contained(candidate) and not evidence.unproven))
        return () if whole else (*opened, Doubt(DoubtKind.UNPROVEN, _first_reason(candidate, evidence)))
    written = written_files(candidate, earlier)
    doubts = [*opened, *_fewer(candidate, baseline), *_mixed(candidate, baseline, written)]
    if framework and all(doubt.kind is not DoubtKind.FEWER for doubt in doubts):
        return opened
    comparable = [save for save in earlier if save.is_sure] or [baseline]
    unproven = evidence.unproven.keys() & written
    smaller = shrunk_files(candidate, comparable)
    doubts += [Doubt(DoubtKind.SMALLER, reason) for name, reason in smaller if name in unproven]
    doubts += [Doubt(DoubtKind.FEWER, reason) for reason in _fewer_members(evidence, unproven, comparable)]
    doubts += [
        Doubt(DoubtKind.FEWER, reason) for reason in _fewer_pickles(candidate, evidence, comparable[0])
    ]
    reasons = _unproven(candidate, evidence, comparable, written)
    doubts += [Doubt(DoubtKind.UNPROVEN, reason) for reason in reasons]
    return tuple(doubts)


def is_self_contained(candidate: Candidate) -> bool:
    """Whether it is one file at the top that is not a part of a training state, by its name."""
    (name, *others) = candidate.data_files
    suffix = Path(name).suffix
    if others or "/" in name or suffix in HALVES or without_parts(Path(name).stem) != Path(name).stem:
        return False
    return not is_part(candidate.name, [suffix])


def _first_reason(candidate: Candidate, evidence: Evidence) -> str:
    if evidence.unproven and is_self_contained(candidate):
        return next(f"{name}: {reason}" for name, reason in evidence.unproven.items())
    return FIRST


def _fewer(candidate: Candidate, baseline: Save) -> Iterator[Doubt]:
    names = missing_names(candidate, baseline.candidate)
    if missing := [name for name in names if not TEMPORARY_PART.search(name)]:
        reason = f"{missing[0]} of {baseline.candidate.name} has no counterpart"
        yield Doubt(
            DoubtKind.FEWER, reason if len(missing) == 1 else f"{reason}, nor have {len(missing) - 1} more"
        )


def _mixed(candidate: Candidate, baseline: Save, written: frozenset[str]) -> Iterator[Doubt]:
    """Some of the files that the save before wrote are still those of that save."""
    if candidate.name != baseline.candidate.name:
        return
    old = sorted((baseline.written - written) & candidate.data_files.keys())
    if old and written.isdisjoint(baseline.candidate.data_files):
        reason = f"files were added to {candidate.name}, such as {min(written)}; {ONE_NAME}"
        yield Doubt(DoubtKind.UNPROVEN, reason)
    elif old:
        yield Doubt(DoubtKind.MIXED, f"{old[0]} is still the one of the save before")


def _unproven(
    candidate: Candidate, evidence: Evidence, comparable: Sequence[Save], written: frozenset[str]
) -> Iterator[str]:
    """`comparable` are the sure saves before, newest first, or the newest of all."""
    baseline = comparable[0]
    if not baseline.is_sure:
        yield f"{baseline.candidate.name}, the one before, is doubtful"
    if new := missing_names(baseline.candidate, candidate):
        yield f"{new[0]} is new in its series: other files may follow"
    paired = [dict(counterparts(candidate, save.candidate)) for save in comparable]
    for name in sorted(evidence.unproven.keys() & written):
        identity = candidate.data_files[name]
        twins = [found[name] for found in paired if name in found]
        if any(_same_members(name, evidence, save) for save in comparable):
            continue
        scattered = name in evidence.members or Path(name).suffix in SCATTERED
        if scattered or identity.size not in {twin.size for twin in twins}:
            yield f"{name}: {evidence.unproven[name]}"
        elif name in evidence.holes:
            yield f"{name}: {evidence.holes[name]:,} of its bytes were never written (it has holes)"
        elif identity.inode in {twin.inode for twin in twins}:
            yield f"{name} was overwritten in place: nothing shows whether all of it is new"
        elif name in evidence.lingered and Path(name).suffix not in STREAMED:
            yield f"{name} had its size a while before it was closed: it may have been mapped"
        elif name in evidence.unclosed:
            yield f"{name}: no close was seen"


def _fewer_members(evidence: Evidence, unproven: Iterable[str], comparable: Sequence[Save]) -> Iterator[str]:
    for name in sorted(unproven):
        members = _names(evidence.members.get(name, ()))
        known = map(_names, comparable[0].members.values())
        missing = [one - members for one in known if members and members < one]
        if missing:
            yield f"{name} lacks {min(missing[0])}, which the one before has"


def _fewer_pickles(candidate: Candidate, evidence: Evidence, baseline: Save) -> Iterator[str]:
    """Each pickle shows its own end, and not that another one follows in the file."""
    for name, twin in twin_names(candidate, baseline.candidate):
        count, known = pickle_count(evidence.members, name), pickle_count(baseline.members, twin)
        if 0 < count < known:
            yield f"{name} has fewer pickles ({count}) than the one before ({known})"


def _names(members: Iterable[tuple[str, int]]) -> set[str]:
    return {name for name, _ in members}


def _same_members(name: str, evidence: Evidence, baseline: Save) -> bool:
    """Whether an archive has exactly the members that its counterpart has."""
    members = evidence.members.get(name)
    return bool(members) and members in baseline.members.values()

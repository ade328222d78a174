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
the same kind settles the doubt: a trainer that writes step 200 has finished step 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from podferry.contract.destination.commit import Doubt, DoubtKind
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.evidence import Evidence
from podferry.sidecar.checkpoint.detect.flat_groups import is_part
from podferry.sidecar.checkpoint.detect.history import (
    Save,
    baseline_of,
    clearly_smaller,
    counterparts,
    missing_names,
    shrunk_files,
    written_files,
)
from podferry.sidecar.runtime.file_identity import FileIdentity

FIRST = "it is the first of its series, and nothing shows that all of its files exist"
TEMPORARY_FOLDER = "_temp/"
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
NONE_EMPTIED: Mapping[str, FileIdentity] = MappingProxyType({})
"""No file was seen to be cut off."""
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
        whole = not opened and (framework or (_is_self_contained(candidate) and not evidence.unproven))
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
    reasons = _unproven(candidate, evidence, comparable, written)
    doubts += [Doubt(DoubtKind.UNPROVEN, reason) for reason in reasons]
    return tuple(doubts)


def _is_self_contained(candidate: Candidate) -> bool:
    """Whether it is one file at the top that is not a part of a training state, by its name."""
    (name, *others) = candidate.data_files
    suffix = Path(name).suffix
    return not others and "/" not in name and suffix not in HALVES and not is_part(candidate.name, [suffix])


def _first_reason(candidate: Candidate, evidence: Evidence) -> str:
    if evidence.unproven and _is_self_contained(candidate):
        return next(f"{name}: {reason}" for name, reason in evidence.unproven.items())
    return FIRST


def _fewer(candidate: Candidate, baseline: Save) -> Iterator[Doubt]:
    names = missing_names(candidate, baseline.candidate)
    if missing := [name for name in names if TEMPORARY_FOLDER not in name]:
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


def _names(members: Iterable[tuple[str, int]]) -> set[str]:
    return {name for name, _ in members}


def _same_members(name: str, evidence: Evidence, baseline: Save) -> bool:
    """Whether an archive has exactly the members that its counterpart has."""
    members = evidence.members.get(name)
    return bool(members) and members in baseline.members.values()


def proves(
    candidate: Candidate, save: Save, *, one_life: bool, emptied: Mapping[str, FileIdentity] = NONE_EMPTIED
) -> bool:
    """Whether a complete later save shows that an earlier doubtful one is complete.

    It does if it began after the last change to the earlier one and has no file that the earlier one lacks or
    has clearly smaller. A later version of the same name must have replaced all of it: else it may be
    the rest of the same save.

    Args:
        candidate: The later save, not incomplete.
        save: The earlier, doubtful one.
        one_life: The trainer cannot have restarted between the two.
        emptied: What files of its name held before they were cut off, to be written again.
    """
    kinds, earlier = {doubt.kind for doubt in save.candidate.doubts}, save.candidate
    if kinds & {DoubtKind.OPEN, DoubtKind.LEFT_OUT} or (DoubtKind.MIXED in kinds and not one_life):
        return False
    known = dict(earlier.files)
    began = min((one.mtime_ns for one in _newly_written(candidate, earlier)), default=0)
    if began < earlier.changed_ns or missing_names(earlier, candidate):
        return False
    if not one_life and missing_names(candidate, earlier):
        return False  # both may be torn
    if candidate.name == earlier.name and not _replaces(candidate, save, kinds, emptied):
        return False
    pairs = dict(counterparts(earlier, candidate))
    sizes = [(known[name].size, pairs[name].size) for name in save.unproven & pairs.keys()]
    if not one_life and any(size != later for size, later in sizes):
        return False  # the trainer may have been killed just before its end
    return not any(clearly_smaller(size, [later]) for size, later in sizes)


def _newly_written(candidate: Candidate, earlier: Candidate) -> Iterator[FileIdentity]:
    """The files of a later save, without copies that keep the time of the same original: a tokenizer."""
    known = dict(earlier.files)
    twins = {name: (twin.size, twin.mtime_ns) for name, twin in counterparts(candidate, earlier)}
    for name, one in candidate.data_files.items():
        if known.get(name) != one and twins.get(name) != (one.size, one.mtime_ns):
            yield one


def _replaces(
    candidate: Candidate, save: Save, kinds: set[DoubtKind], emptied: Mapping[str, FileIdentity]
) -> bool:
    """Whether a later version of the same name wrote all files of the earlier one again.

    If the earlier one had files of two saves, the later one must have left the same files as they were.
    """
    files, known = candidate.data_files, save.candidate.data_files
    changed = {name for name, identity in files.items() if known.get(name) != identity}
    return (changed == save.written if DoubtKind.MIXED in kinds else changed >= known.keys()) and all(
        name not in save.unproven
        or files[name].inode != known[name].inode
        or (emptied.get(name) == known[name] and name not in save.may_change)
        for name in changed & known.keys()
    )

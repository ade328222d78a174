"""Decides whether a later save proves an earlier, doubtful one. Pure.

A trainer that writes step 200 has finished step 100, unless it was killed there and has restarted, or saves
asynchronously: then both may be halves that look alike. So step 200 must be complete itself: it is sure
without step 100, it has rested for as long as training took between the two, or step 300 has begun.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from podferry.contract.destination.commit import DoubtKind
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.history import (
    Members,
    Save,
    clearly_smaller,
    counterparts,
    missing_names,
    pickle_count,
    twin_names,
)
from podferry.sidecar.runtime.file_identity import FileIdentity

MAX_PATIENCE_SECONDS = 60.0
"""For the rest of a save that looks like the doubtful one before it."""
NONE_EMPTIED: Mapping[str, FileIdentity] = MappingProxyType({})
"""No file was seen to be cut off."""
UNKNOWN_MEMBERS: Members = MappingProxyType({})
"""Nobody has looked into the files."""


def proves(
    candidate: Candidate,
    save: Save,
    *,
    one_life: bool,
    emptied: Mapping[str, FileIdentity] = NONE_EMPTIED,
    members: Members = UNKNOWN_MEMBERS,
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
        members: What is known about the members of its files.
    """
    kinds, earlier = {doubt.kind for doubt in save.candidate.doubts}, save.candidate
    if kinds & {DoubtKind.OPEN, DoubtKind.LEFT_OUT} or (DoubtKind.MIXED in kinds and not one_life):
        return False
    known = dict(earlier.files)
    if _began_ns(candidate, earlier) < earlier.changed_ns or missing_names(earlier, candidate):
        return False
    fewer = DoubtKind.FEWER in kinds and _may_have_more_pickles(candidate, save, members)
    if fewer or (not one_life and missing_names(candidate, earlier)):
        return False  # one of them is torn, or both may be
    if candidate.name == earlier.name and not _replaces(candidate, save, kinds, emptied):
        return False
    pairs = dict(counterparts(earlier, candidate))
    sizes = [(known[name].size, pairs[name].size) for name in save.unproven & pairs.keys()]
    if not one_life and any(size != later for size, later in sizes):
        return False  # the trainer may have been killed just before its end
    return not any(clearly_smaller(size, [later]) for size, later in sizes)


def _may_have_more_pickles(candidate: Candidate, save: Save, members: Members) -> bool:
    """Whether a later save has pickles that an earlier one lacks, as far as that is known."""
    pairs = twin_names(save.candidate, candidate)
    counts = ((pickle_count(save.members, one), pickle_count(members, twin)) for one, twin in pairs)
    return any(count and not 0 < later <= count for count, later in counts)


def patience(candidate: Candidate, save: Save) -> float:
    """Seconds that a later save must rest before it proves one that it looks like.

    A save that pauses between two of its files pauses for less than the training between two saves.
    """
    between = (_began_ns(candidate, save.candidate) - save.candidate.changed_ns) / 1e9
    return min(max(between, 0.0), MAX_PATIENCE_SECONDS)


def follows(candidate: Candidate, save: Save, emptied: Mapping[str, FileIdentity] = NONE_EMPTIED) -> bool:
    """Whether a later save, complete or not, began after another one, and is not the rest of it."""
    earlier = save.candidate
    if candidate.name == earlier.name and not _replaces(candidate, save, set(), emptied):
        return False
    return _began_ns(candidate, earlier) >= earlier.changed_ns


def _began_ns(candidate: Candidate, earlier: Candidate) -> int:
    return min((one.mtime_ns for one in _newly_written(candidate, earlier)), default=0)


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

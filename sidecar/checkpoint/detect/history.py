"""Plausibility check: compares a checkpoint with earlier ones of its series.

A series is all checkpoints whose names differ only in digits: `step-100`, `step-200`; all versions of `last`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from podferry.contract.quantity import format_bytes
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.missing_files import confirmed_files, missing_files
from podferry.sidecar.runtime.file_identity import FileIdentity

DIGITS = re.compile(r"\d+")
MIN_SIZE_SHARE = 0.9
"""Below this share of the previous size, a file may be torn."""
SAME_SIZE_BYTES = 4096
"""Complete files of one series with the same tensors differ by up to this many bytes: their metadata."""


@dataclass(frozen=True, slots=True)
class History:
    """The other checkpoints of a series.

    Attributes:
        earlier: Accepted as complete, newest first.
        concurrent: Present in the directory, complete or not.
    """

    earlier: tuple[Candidate, ...]
    concurrent: tuple[Candidate, ...] = ()


def series_of(name: str) -> str:
    """What all names of a series have in common."""
    return DIGITS.sub("#", name)


def history_of(candidate: Candidate, accepted: Iterable[Candidate], present: Iterable[Candidate]) -> History:
    """The rest of a checkpoint's series.

    Args:
        candidate: The checkpoint.
        accepted: Checkpoints accepted as complete, in any order, including earlier versions of this name.
        present: Checkpoints in the directory.
    """
    series, changed_ns = series_of(candidate.name), candidate.changed_ns
    earlier = [one for one in accepted if series_of(one.name) == series and one.changed_ns <= changed_ns]
    earlier.sort(key=lambda other: other.changed_ns, reverse=True)
    others = (other for other in present if other.name != candidate.name)
    return History(tuple(earlier), tuple(other for other in others if series_of(other.name) == series))


def shrunk_files(candidate: Candidate, history: History) -> Iterator[tuple[str, str]]:
    """The files that are clearly smaller than those of the previous checkpoint, with both sizes in words.

    Files that their framework's last file confirms are left out. Two files of the same new size show that it
    is intended: a killed writer leaves a random size.
    """
    files = dict(candidate.files)
    earlier = [dict(_counterparts(candidate, other)) for other in history.earlier]
    concurrent = [dict(_counterparts(candidate, other)) for other in history.concurrent]
    for name in files.keys() - confirmed_files(files):
        size = files[name].size
        sizes = [found[name].size for found in earlier if name in found]
        others = [found[name].size for found in concurrent if name in found]
        intended = any(abs(other - size) <= SAME_SIZE_BYTES for other in sizes + others)
        if clearly_smaller(size, sizes) and not intended:
            yield name, f"{name} is {format_bytes(size)}, the previous one was {format_bytes(sizes[0])}"


def clearly_smaller(size: int, earlier: list[int]) -> bool:
    """Whether a size is far below the earlier ones, newest first, in bytes."""
    if not earlier or size >= earlier[0] - SAME_SIZE_BYTES:
        return False
    constant = len(earlier) > 1 and abs(earlier[0] - earlier[1]) <= SAME_SIZE_BYTES
    return constant or size < MIN_SIZE_SHARE * earlier[0]


def _counterparts(candidate: Candidate, other: Candidate) -> Iterator[tuple[str, FileIdentity]]:
    """The files of another checkpoint of the series that correspond to this one's, by this one's names.

    Names that differ only in digits, such as those of ranks, are paired in order if both have equally many.
    """
    theirs = _by_series(other)
    for key, names in _by_series(candidate).items():
        found = theirs.get(key, [])
        if len(found) == len(names):
            identities = dict(other.files)
            yield from ((name, identities[twin]) for name, twin in zip(names, found, strict=True))


def _by_series(candidate: Candidate) -> Mapping[str, list[str]]:
    found = defaultdict(list)
    for name, _ in candidate.files:
        found[series_of(name)].append(name)
    for names in found.values():
        names.sort(key=lambda name: [int(digits) for digits in DIGITS.findall(name)])
    return found


def missing_sticky_file(candidate: Candidate, history: History, *, gang: bool) -> str | None:
    """Why a checkpoint lacks a file of a sticky rule that the previous one had, or None."""
    if not history.earlier:
        return None
    previous = {series_of(name) for name, _ in history.earlier[0].files}
    for missing in missing_files(dict(candidate.files), gang=gang):
        if missing.sticky_name and series_of(missing.sticky_name) in previous:
            return f"{missing.reason}, and {history.earlier[0].name} had one"
    return None


def torn_file(root: Path, candidate: Candidate, history: History) -> str | None:
    """Why one of a checkpoint's files may be torn, or None: it is too small, and nothing shows its end."""
    identities = dict(candidate.files)
    known_inodes = {identity.inode for one in history.earlier for _, identity in one.files}
    for name, sizes in shrunk_files(candidate, history):
        overwritten = identities[name].inode in known_inodes
        if not check_format(root / name).conclusive and (overwritten or not moved_in(root / name)):
            return f"{sizes}, and its format does not show whether it is complete"
    return None


def moved_in(path: Path) -> bool:
    """Whether a file was renamed, or its times were set, after its last write.

    A write sets both times at once. A file that is overwritten in place may have hard links, and each added
    or removed link looks the same as a rename.
    """
    try:
        stat = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.st_ctime_ns > stat.st_mtime_ns

"""Earlier saves of each series, which show what the next save should look like.

A series is all checkpoints whose names differ only in digits: `step-100`, `step-200`; all versions of `last`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from podferry.contract.destination.series import by_series, series_of, without_counterpart
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.formats.pickle_check import PICKLES
from podferry.sidecar.runtime.file_identity import FileIdentity

Members = Mapping[str, frozenset[tuple[str, int]]]
"""What is known about the members of archives, by file name, as in `FormatVerdict`."""
MIN_SIZE_SHARE = 0.9
"""Below this share of the previous size, a file is clearly smaller."""
SAME_SIZE_BYTES = 4096
"""Complete files of one series with the same tensors differ by up to this many bytes: their metadata."""
MAX_SAVES = 8
"""Saves of one series that are remembered: enough to find the newest sure one among doubtful ones."""


@dataclass(frozen=True, slots=True)
class Save:
    """A checkpoint that was accepted, as the next one of its series is compared with it.

    Attributes:
        candidate: Its files, sizes, times and doubts.
        written: The names of the files that this save wrote; the others are older.
        unproven: The names of the files whose own format does not prove that they are complete.
        members: What is known about the members of each archive, by file name; empty if unknown.
        may_change: Unproven files that somebody may have been filling still.
        emptied: What its files held before they were cut off, to be written again.
    """

    candidate: Candidate
    written: frozenset[str]
    unproven: frozenset[str]
    members: Members
    may_change: frozenset[str]
    emptied: Mapping[str, FileIdentity] = field(default_factory=dict)

    @property
    def is_sure(self) -> bool:
        """Whether it is proven complete."""
        return not self.candidate.doubts

    def settled(self) -> Save:
        """The same, proven complete."""
        return replace(self, candidate=replace(self.candidate, doubts=()))


class SaveHistory:
    """The accepted saves of all series, in the order in which they were accepted."""

    def __init__(self) -> None:
        self._saves: dict[str, list[Save]] = {}

    def __iter__(self) -> Iterator[Save]:
        return chain.from_iterable(self._saves.values())

    def update(self, settled: Iterable[Candidate]) -> None:
        """Add versions that an earlier worker settled or that were restored, and take over settled doubts."""
        for candidate in sorted(settled, key=lambda one: one.changed_ns):
            saves = self._saves.setdefault(series_of(candidate.name), [])
            same = [save for save in saves if save.candidate.is_version_of(candidate)]
            if not same:
                names = frozenset(candidate.data_files)
                saves.append(Save(candidate, names, names, {}, names))
                saves.sort(key=lambda save: save.candidate.changed_ns)
            elif same[0].candidate.doubts and not candidate.doubts:
                self.settle(same[0])

    def earlier(self, candidate: Candidate) -> list[Save]:
        """The saves of its series before a candidate, newest first, and those that had its file with others.

        The file that such a save is named after may be late this time.
        """
        own = self._saves.get(series_of(candidate.name), [])
        saves = sorted([*own, *others], key=_changed_ns) if (others := self._with_others(candidate)) else own
        before = [save for save in saves if not save.candidate.is_version_of(candidate)]
        return [save for save in reversed(before) if save.candidate.changed_ns <= candidate.changed_ns]

    def _with_others(self, candidate: Candidate) -> list[Save]:
        """The saves of other series that have the counterpart of a candidate's only file."""
        name, *more = candidate.data_files
        if more or "/" in name:
            return []
        own, file = series_of(candidate.name), series_of(name)
        others = (save for series, saves in self._saves.items() if series != own for save in saves)
        return [save for save in others if _has_at_top(save.candidate, file)]

    def add(self, save: Save) -> None:
        """Remember an accepted save; the oldest ones of its series are forgotten."""
        saves = self._saves.setdefault(series_of(save.candidate.name), [])
        others = [one for one in saves if not one.candidate.is_version_of(save.candidate)]
        saves[:] = [*others[-MAX_SAVES + 1 :], save]

    def of_name(self, name: str) -> list[Save]:
        """The saves of a name, oldest first."""
        return [save for save in self._saves.get(series_of(name), []) if save.candidate.name == name]

    def is_known(self, name: str) -> bool:
        """Whether checkpoints have this name: one was accepted under it, or a sure one of its series."""
        saves = self._saves.get(series_of(name), [])
        return any(save.is_sure or save.candidate.name == name for save in saves)

    def doubtful(self) -> list[Save]:
        """The newest save of each series, if it is doubtful."""
        newest = (saves[-1] for saves in self._saves.values() if saves)
        return [save for save in newest if not save.is_sure]

    def settle(self, save: Save) -> None:
        """A doubtful save is proven complete."""
        saves = self._saves.get(series_of(save.candidate.name), [])
        own = save.candidate
        saves[:] = [one.settled() if one.candidate.is_version_of(own) else one for one in saves]


def _changed_ns(save: Save) -> int:
    return save.candidate.changed_ns


def _has_at_top(candidate: Candidate, series: str) -> bool:
    return any(series_of(name) == series for name, _ in candidate.files if "/" not in name)


def baseline_of(earlier: Iterable[Save]) -> Save | None:
    """The save to compare with: the newest sure one, else the newest of all."""
    saves = list(earlier)
    return next((save for save in saves if save.is_sure), saves[0] if saves else None)


def written_files(candidate: Candidate, earlier: Iterable[Save]) -> frozenset[str]:
    """The files that were written since the newest sure save of the same name, or since the newest one."""
    same = baseline_of(save for save in earlier if save.candidate.name == candidate.name)
    known = dict(same.candidate.files) if same is not None else {}
    return frozenset(name for name, identity in candidate.data_files.items() if known.get(name) != identity)


def overwritten_files(
    candidate: Candidate, same_name: Iterable[Save], emptied: Mapping[str, FileIdentity]
) -> frozenset[str]:
    """The files with the inode of an earlier save and other bytes that were not seen to be emptied."""
    known = {(name, one.inode): one for save in same_name for name, one in save.candidate.files}
    files = candidate.data_files.items()
    before = {name: known.get((name, identity.inode), identity) for name, identity in files}
    return frozenset(name for name, now in files if before[name] not in {now, emptied.get(name)})


def missing_names(candidate: Candidate, other: Candidate) -> list[str]:
    """The data files of `other` that have no counterpart in `candidate`, digits apart, sorted.

    Names that differ only in digits, such as those of shards, must be as many.
    """
    return without_counterpart(other.data_files, candidate.data_files)


def shrunk_files(candidate: Candidate, earlier: Iterable[Save]) -> Iterator[tuple[str, str]]:
    """The files that are clearly smaller than those of earlier saves, with both sizes in bytes, in words."""
    found = [dict(counterparts(candidate, save.candidate)) for save in earlier]
    for name, identity in candidate.data_files.items():
        sizes = [known[name].size for known in found if name in known]
        if clearly_smaller(identity.size, sizes):
            yield name, f"{name} has {identity.size:,} bytes, the previous one had {sizes[0]:,}"


def clearly_smaller(size: int, earlier: list[int]) -> bool:
    """Whether a size is far below the earlier ones, newest first, in bytes."""
    if not earlier or size >= earlier[0] - SAME_SIZE_BYTES:
        return not size and bool(earlier) and earlier[0] > 0
    constant = len(earlier) > 1 and abs(earlier[0] - earlier[1]) <= SAME_SIZE_BYTES
    return constant or size < MIN_SIZE_SHARE * earlier[0]


def twin_names(candidate: Candidate, other: Candidate) -> Iterator[tuple[str, str]]:
    """The data files of this checkpoint with those of another one of the series that correspond to them.

    Names that differ only in digits, such as those of ranks, are paired in order if both have equally many.
    """
    theirs = by_series(other.data_files)
    for key, names in by_series(candidate.data_files).items():
        found = theirs.get(key, [])
        if len(found) == len(names):
            yield from zip(names, found, strict=True)


def pickle_count(members: Members, name: str) -> int:
    """How many pickles a file has; 0 if it is none of pickles, or unknown."""
    return dict(members.get(name, ())).get(PICKLES, 0)


def counterparts(candidate: Candidate, other: Candidate) -> Iterator[tuple[str, FileIdentity]]:
    """The files of another checkpoint of the series that correspond to this one's, by this one's names."""
    identities = dict(other.files)
    return ((name, identities[twin]) for name, twin in twin_names(candidate, other))

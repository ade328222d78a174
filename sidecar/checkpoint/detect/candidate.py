"""Which files form a checkpoint, and whether their names show that it is incomplete. Pure.

A checkpoint is one name at the top of the checkpoint directory: a directory with its contents, the files that
share a stem (`epoch-3.pdparams` and `epoch-3.pdopt`), or the parts of a training state next to each other
(`podferry.sidecar.checkpoint.detect.flat_groups`), plus the pointer file that names it. It is incomplete if

* one of its names is that of an unfinished file,
* a file that its framework writes last is missing (`podferry.sidecar.checkpoint.detect.framework_rules`), or
* a format shows that a file is incomplete (`podferry.sidecar.checkpoint.detect.format_checks`).

Otherwise it is sure or doubtful: `podferry.sidecar.checkpoint.detect.judgement` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from podferry.contract.destination.commit import HASH_DIGITS, Doubt
from podferry.contract.destination.kind import Kind, kind_of, kind_of_file
from podferry.contract.destination.series import without_shards
from podferry.contract.file_names import name_problem, quoted
from podferry.sidecar.checkpoint.detect.change_tracker import TrackedFile
from podferry.sidecar.checkpoint.detect.flat_groups import GROWING, group_stems, has_numbered_suffix
from podferry.sidecar.checkpoint.detect.missing_files import missing_files
from podferry.sidecar.checkpoint.detect.pointer_files import find_checkpoint_name, is_pointer
from podferry.sidecar.checkpoint.detect.unfinished_names import (
    IGNORED_NAMES,
    is_unfinished,
    is_unfinished_at_top,
)
from podferry.sidecar.runtime.file_identity import FileIdentity, Files

Version = tuple[str, Files]
"""A name and the data files: what distinguishes versions of a checkpoint."""
NO_POINTERS: Mapping[str, str] = MappingProxyType({})
INDEX_STEM = re.compile(r"(?P<stem>.+)\.(?:safetensors|bin)\.index")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint in the directory, complete or not.

    Attributes:
        name: The directory's name, the files' common stem, or the stem that their group is named after.
        files: Relative names with their identities.
        doubts: Why it may be incomplete, once judged; none if it is sure. They do not distinguish versions.
    """

    name: str
    files: Files
    doubts: tuple[Doubt, ...] = field(default=(), compare=False)

    @property
    def bytes(self) -> int:
        """Sum of the sizes."""
        return sum(identity.size for _, identity in self.files)

    @property
    def changed_ns(self) -> int:
        """The time of its last change, nanoseconds since the epoch."""
        return max(identity.mtime_ns for _, identity in self.files)

    @property
    def data_files(self) -> dict[str, FileIdentity]:
        """The files without the pointers, which come and go; all of them if all look like pointers."""
        data = {name: identity for name, identity in self.files if not is_pointer(name, identity.size)}
        return data or dict(self.files)

    @property
    def kind(self) -> Kind:
        """What it is made of, like a commit's."""
        files = self.data_files
        return kind_of(files, (identity.size for identity in files.values()))

    @property
    def version(self) -> Version:
        """What distinguishes versions: the name and the data files."""
        return self.name, tuple(self.data_files.items())

    def is_version_of(self, other: Candidate) -> bool:
        """Whether both are the same version, without a look at the files if the names differ."""
        return self.name == other.name and (self.files == other.files or self.version == other.version)

    def is_subset_of(self, other: Candidate | None) -> bool:
        """Whether `other` has every file of this one, unchanged.

        A checkpoint that lost files is not a new version of itself: it is being deleted, or was pruned.
        """
        return other is not None and set(self.files) <= set(other.files)


def candidate_name(name: str) -> str:
    """The checkpoint that a file belongs to, by its name relative to the checkpoint directory.

    `model-00001-of-00002.safetensors` and `model.safetensors.index.json` belong to `model`, and
    `step-200-rank0.pt` to `step-200`. A log keeps its whole name: it grows all the time, and what shares its
    stem would never be quiet.
    """
    top, slash, _ = name.partition("/")
    if slash or has_numbered_suffix(top) or Path(top).suffix in GROWING:
        return top
    stem = Path(top).stem
    if index := INDEX_STEM.fullmatch(stem):
        return index["stem"]
    # `model-rank0.json`, which may be of another time, must not keep `model.pt` from being complete.
    return stem if kind_of_file(top) is Kind.RECORD else without_shards(stem)


def candidates(
    files: Mapping[str, FileIdentity], pointers: Mapping[str, str] = NO_POINTERS
) -> dict[str, Candidate]:
    """The checkpoints that files form, by name. Unfinished and ignored files belong to none.

    Args:
        files: All files in the directory.
        pointers: The texts of the pointer files among them. Each belongs to the checkpoint that it names; one
            that names a missing checkpoint belongs to none.
    """
    kept = (name for name in sorted(files) if name not in IGNORED_NAMES)
    relevant = [name for name in kept if not is_unfinished_at_top(name)]
    stems = {name: candidate_name(name) for name in relevant if name not in pointers}
    merged = _merged_stems(stems, files)
    names = set(stems.values())
    owners = {pointer: find_checkpoint_name(text, names) for pointer, text in pointers.items()}
    groups: dict[str, list[tuple[str, FileIdentity]]] = {}
    for name in relevant:
        stem = owners[name] if name in owners else stems[name]
        if stem is not None:
            groups.setdefault(merged.get(stem, stem), []).append((name, files[name]))
    return {name: Candidate(name, tuple(members)) for name, members in groups.items()}


def _merged_stems(stems: Mapping[str, str], files: Mapping[str, FileIdentity]) -> dict[str, str]:
    """The checkpoint of each stem that is a part of one; `stems` are those of all files."""
    suffixes: dict[str, set[str]] = {}
    changed_ns: dict[str, int] = {}
    for name, stem in stems.items():
        suffixes.setdefault(stem, set()).add("/" if "/" in name else Path(name).suffix)
        changed_ns[stem] = max(changed_ns.get(stem, 0), files[name].mtime_ns)
    return group_stems({stem: found for stem, found in suffixes.items() if "/" not in found}, changed_ns)


def uncommittable_reason(candidate: Candidate) -> str | None:
    """Why a candidate's names prevent a commit, or None."""
    for name, _ in candidate.files:
        if is_unfinished(name):
            return f"{name} is named like an unfinished file"
        if problem := name_problem(f"{candidate.name}-{'0' * HASH_DIGITS}/{name}"):
            return f"{quoted(name)} cannot be committed: {problem.what}"
    return None


def incomplete_reason(candidate: Candidate, *, gang: bool = False) -> str | None:
    """Why a candidate's names show that it is incomplete, or None; `gang` as in `missing_files`."""
    return uncommittable_reason(candidate) or next(missing_files(dict(candidate.files), gang=gang), None)


def ready_at(files: Iterable[TrackedFile], closed_seconds: float, unclosed_seconds: float) -> float:
    """When all files will have been quiet long enough, on the clock of `TrackedFile.since`."""
    return max(file.since + (closed_seconds if file.closed else unclosed_seconds) for file in files)

"""Which files form a checkpoint, and when it is whole. Pure rules over names.

A checkpoint is what lies under one name at the top of the checkpoint directory: a directory with all in it,
or the files that share a stem (`epoch-3.pdparams` and `epoch-3.pdopt`), with the pointer that names it. It
is whole when

* none of its names says that it is unfinished,
* what its writer leaves last is there (`podferry.sidecar.checkpoint.detect.framework_rules`),
* every file has been quiet for a while after its last close, and
* every file whose format can tell says that it is whole (`podferry.sidecar.checkpoint.detect.format_checks`).

Where the trainer marks it, the mark stands for the second and the third.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from podferry.contract.commit import HASH_DIGITS
from podferry.contract.file_names import name_problem
from podferry.sidecar.checkpoint.detect.change_tracker import SeenFile
from podferry.sidecar.checkpoint.detect.framework_rules import AT_THE_TOP_ONLY, IGNORED, UNFINISHED, Without
from podferry.sidecar.checkpoint.detect.missing_files import missing_files
from podferry.sidecar.checkpoint.detect.pointer_files import named
from podferry.sidecar.runtime.file_identity import FileIdentity

NEVER, PAUSE = Without.NEVER, Without.PAUSE
NO_TEXTS: Mapping[str, str] = MappingProxyType({})
SHARDED = re.compile(r"(?P<stem>.+?)(?:-\d{5}-of-\d{5}|\.(?:safetensors|bin)\.index)")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint as it lies in the directory.

    Attributes:
        name: The directory's name or the files' common stem.
        files: Relative names with their identities.
    """

    name: str
    files: tuple[tuple[str, FileIdentity], ...]

    @property
    def bytes(self) -> int:
        """Sum of the sizes."""
        return sum(identity.size for _, identity in self.files)

    @property
    def changed_ns(self) -> int:
        """The time of its last change, nanoseconds since the epoch."""
        return max(identity.mtime_ns for _, identity in self.files)

    def within(self, other: Candidate | None) -> bool:
        """Whether every file of this one is in `other` as it is.

        A checkpoint that lost files is not a new version of itself: it is being removed, or was thinned out.
        """
        return other is not None and set(self.files) <= set(other.files)


def candidate_name(name: str) -> str:
    """The checkpoint that a file belongs to, by its name relative to the checkpoint directory.

    `model-00001-of-00002.safetensors` and `model.safetensors.index.json` belong to `model`.
    """
    top, slash, _ = name.partition("/")
    if slash:
        return top
    sharded = SHARDED.fullmatch(Path(top).stem)
    return sharded["stem"] if sharded else Path(top).stem


def unfinished(name: str) -> bool:
    """Whether a relative name says of itself that it is not done."""
    top, *rest = name.split("/")
    below = [pattern for pattern in UNFINISHED if pattern not in AT_THE_TOP_ONLY]
    return _matches(top, UNFINISHED) or any(_matches(part, below) for part in rest)


def _matches(part: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(part, pattern) for pattern in patterns)


def candidates(
    files: Mapping[str, FileIdentity], texts: Mapping[str, str] = NO_TEXTS
) -> dict[str, Candidate]:
    """The checkpoints that files form, by name. What is unfinished or left out is part of none.

    Args:
        files: What lies in the directory.
        texts: What stands in the pointers among them: each belongs to the checkpoint that it names, and one
            that names nothing that lies there to none.
    """
    lying = [
        name
        for name in sorted(files)
        if name not in IGNORED and not _matches(name.partition("/")[0], UNFINISHED)
    ]
    others = {candidate_name(name) for name in lying if name not in texts}
    owner = {name: named(text, others) for name, text in texts.items()}
    groups: dict[str, list[tuple[str, FileIdentity]]] = {}
    for name in lying:
        group = owner[name] if name in owner else candidate_name(name)
        if group is not None:
            groups.setdefault(group, []).append((name, files[name]))
    return {name: Candidate(name, tuple(held)) for name, held in groups.items()}


def unfit(candidate: Candidate) -> str | None:
    """Why a candidate cannot be committed by the names that it has, None where it can."""
    for name, _ in candidate.files:
        if unfinished(name):
            return f"{name} is named like an unfinished file"
        problem = name_problem(f"{candidate.name}-{'0' * HASH_DIGITS}/{name}")
        if problem is not None:
            return f"{name!a} cannot be committed: {problem.what}"
    return None


def unready(candidate: Candidate, *, gang: bool = False) -> str | None:
    """Why a candidate cannot be whole by the names that it has, None where it may be.

    Args:
        candidate: What lies there.
        gang: This pod has only its part of it, and is not the coordinator's.
    """
    missing = (
        lack.reason for lack in missing_files(dict(candidate.files), gang=gang) if lack.without is NEVER
    )
    return unfit(candidate) or next(missing, None)


def needs_long_quiet(candidate: Candidate, *, gang: bool = False) -> bool:
    """Whether its writer may go on after a longer pause than between two of its files."""
    return any(lack.without is PAUSE for lack in missing_files(dict(candidate.files), gang=gang))


def quiet_since(files: Iterable[SeenFile], closed_seconds: float, unclosed_seconds: float) -> float:
    """When the last of the files will have been quiet long enough, on the clock of `SeenFile.since`."""
    return max(seen.since + (closed_seconds if seen.closed else unclosed_seconds) for seen in files)

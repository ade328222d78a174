"""Which versions of checkpoints the trainer has marked complete."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from podferry.contract.destination.commit import step_of
from podferry.contract.destination.kind import of_main_kind
from podferry.contract.errors import Problem
from podferry.contract.suggest import did_you_mean
from podferry.sidecar.checkpoint.detect.candidate import Candidate, candidate_name
from podferry.sidecar.runtime.file_identity import Files

MUCH_SMALLER = 10
"""A checkpoint of so small a part of another one's size, with the same step, is something next to it."""


def resolve(name_or_step: str, present: Mapping[str, Candidate]) -> Candidate | None:
    """The checkpoint with that name or that file, else the newest state of that step."""
    found = present.get(name_or_step) or present.get(candidate_name(name_or_step.rstrip("/")))
    if found is None:  # a file of a group, or its stem
        found = next((one for one in present.values() if _has_file(one, name_or_step)), None)
    if found is None and name_or_step.isdecimal():
        of_step = [candidate for name, candidate in present.items() if step_of(name) == int(name_or_step)]
        found = max(_main(of_step), key=lambda candidate: candidate.changed_ns, default=None)
    return found


def _main(of_step: Iterable[Candidate]) -> list[Candidate]:
    """Those that may be what the trainer has marked: no plot, and nothing much smaller than the largest."""
    found = of_main_kind(of_step)
    largest = max((candidate.bytes for candidate in found), default=0)
    return [candidate for candidate in found if candidate.bytes * MUCH_SMALLER >= largest]


def _has_file(candidate: Candidate, word: str) -> bool:
    return any(word in {name, candidate_name(name)} for name, _ in candidate.files)


def not_found(name_or_step: str, names: Collection[str]) -> Problem:
    """The problem that no checkpoint has this name or step, with those that exist."""
    measured = f"there are {', '.join(sorted(names))}" if names else "there is none"
    remedy = "Mark it after it is written, by its name in the checkpoint directory or by its step"
    remedy = did_you_mean(name_or_step, names, remedy)
    return Problem(f"no checkpoint is called {name_or_step!r}", measured, remedy)


class CompletionMarks:
    """The marks, by checkpoint.

    Attributes:
        files: The marked version of each checkpoint: its files without pointers. Saved and loaded as it is.
    """

    def __init__(self) -> None:
        self.files: dict[str, Files] = {}

    def mark(self, candidate: Candidate) -> None:
        """Mark a checkpoint complete in its current version."""
        self.files[candidate.name] = tuple(candidate.data_files.items())

    def is_marked(self, candidate: Candidate) -> bool:
        """Whether exactly this version is marked: a changed or added file needs another mark."""
        return dict(self.files.get(candidate.name, ())) == candidate.data_files

    def drop_missing(self, names: Collection[str], before: Mapping[str, Files]) -> None:
        """Drop the marks of checkpoints that were not listed.

        Args:
            names: Of those that were.
            before: The marks when the listing began: what was marked since may not be in it.
        """
        for name, files in before.items():
            if name not in names and self.files.get(name) is files:
                del self.files[name]
